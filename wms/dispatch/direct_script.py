"""The shell script of a job that is sent directly. It waits for a renewed lease, runs the program while the lease lasts, and writes its exit code."""

import shlex

from wms.dispatch.direct import (
    BEGAN,
    ENDED,
    EXIT,
    LEASE,
    NEVER_BEGAN,
    STDERR,
    STDOUT,
    USAGE,
    WORK,
    DirectPayload,
)

# The lease is a number and seconds. The number is another with each renewal, so that what an earlier one left is not taken for
# a lease; the seconds count from when this script sees it, by the node's own clock.
LEASED = """\
known= end=0
look() {{
    read -r number left < {lease} 2>/dev/null || return 1
    [ "$number" != "$known" ] || return 1
    known=$number
    end=$(($(date +%s) + left))
}}
look
tries={patience}
while ! look; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || finish {never}
    sleep 1
done
"""
# Nobody can pass a lease on to where no file system is shared.
UNLEASED = """\
end=9999999999
look() {{ :; }}
"""

SCRIPT = """\
#!/bin/sh
# Job {name}
umask 077
cd {place} || exit 70
mkdir -p tmp
{before}finish() {{
    echo "$1" > {exit}.new && mv {exit}.new {exit}
    {after}exit "$1"
}}
{lease}told=
trap 'told=1' TERM INT HUP USR1 USR2
date +%s > {began}
setsid sh -c {payload} > {stdout} 2> {stderr} < {stdin} &
job=$!
while kill -0 "$job" 2>/dev/null; do
    look
    why=
    [ "$(date +%s)" -lt "$end" ] || why=lease
    [ -z "$told" ] || why=told
    if [ -n "$why" ]; then
        echo "$why" > {ended}
        kill -TERM "-$job" 2>/dev/null
        sleep 1
        kill -KILL "-$job" 2>/dev/null
        break
    fi
    sleep 1 & wait $!
done
wait "$job"
code=$?
kill -KILL "-$job" 2>/dev/null
{{ times; date +%s; }} > {usage}
finish "$code"
"""

PAYLOAD = """\
cd {work} || exit 70
{limit}program={program}
case $program in
    /*|*..*) ;;
    *) if [ -f "./$program" ]; then chmod u+x "./$program"; program="./$program"; fi ;;
esac
exec env -i HOME="$PWD" PWD="$PWD" TMPDIR="${{PWD%/*}}/tmp" {variables} "$program" {arguments}
"""

PATIENCE_SECONDS = 90
"""How many seconds the script waits for the first renewal of the lease. Without one in that time, it never starts the program."""


def direct_script(
    name: str,
    payload: DirectPayload,
    *,
    place: str = ".",
    leased: bool = True,
    before: str = "",
    after: str = "",
) -> str:
    """Return the shell script of a job that is sent directly. `name` stands in a comment of the script.

    `place` is the job's directory, quoted for a shell at the computing element; by default the directory where the script starts. If `leased`
    is False, the program starts at once, and no lease is watched. `before` and `after` are shell lines that run before the program and at the
    end; they unpack the job's files and pack its output.
    """
    stdin = f"{WORK}/{payload.stdin}" if payload.stdin else "/dev/null"
    lease = LEASED if leased else UNLEASED
    return SCRIPT.format(
        name="".join(c for c in name if c.isalnum() or c in ".-_"),
        place=place,
        before=before,
        after=after,
        lease=lease.format(lease=LEASE, never=NEVER_BEGAN, patience=PATIENCE_SECONDS),
        exit=EXIT,
        ended=ENDED,
        began=BEGAN,
        usage=USAGE,
        payload=shlex.quote(_payload(payload)),
        stdout=STDOUT,
        stderr=STDERR,
        stdin=shlex.quote(stdin),
    )


def _payload(payload: DirectPayload) -> str:
    program, *arguments = payload.argv
    variables = [shlex.quote(f"{name}={value}") for name, value in payload.environment.items()]
    return PAYLOAD.format(
        work=WORK,
        limit=f"ulimit -t {payload.cpu_seconds}\n" if payload.cpu_seconds else "",
        program=shlex.quote(program),
        variables=" ".join(variables),
        arguments=shlex.join(arguments),
    )
