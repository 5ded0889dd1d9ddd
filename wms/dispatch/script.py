"""The shell script that a batch system runs for a pilot. It starts the job agent in a scratch directory, and writes the agent's exit code."""

import shlex
from collections.abc import Sequence

from wms.dispatch.job_policy import environment
from wms.dispatch.port import PilotRequest

# The agent gets the batch system's signals as the script does, and drains. A second signal would make it hurry,
# so the script only waits. Nothing after the last brace is read, and the scratch directory is removed in any case.
SCRIPT = """\
#!/bin/sh
# Pilot {pilot} for {site}/{ce}
{policy}umask 077
{log}place=$(mktemp -d "${{TMPDIR:-/tmp}}/{pilot}.XXXXXX") || exit 70
trap 'rm -rf "$place"' EXIT
trap : TERM INT HUP USR1 USR2
export WMS_PILOT={pilot} WMS_PILOT__TOKEN_FILE={token} WMS_PILOT__DIRECTORY="$place/jobs"
{{
    {agent} --config {config} &
    agent=$!
    wait $agent
    code=$?
    while kill -0 $agent 2>/dev/null; do
        wait $agent
        code=$?
    done
    {report}
    exit $code
}}
"""


def pilot_script(
    order: PilotRequest,
    agent: Sequence[str],
    *,
    config: str,
    token: str,
    exit_file: str = "",
    log_file: str = "",
) -> str:
    """Return the shell script of a pilot, which runs the command `agent`.

    `config`, `token`, `exit_file` and `log_file` are paths as the shell reads them at the computing element, quoted. They may be relative
    to the directory in which the script starts. The script writes the agent's exit code to `exit_file`. It appends the output to
    `log_file`, for batch systems that show output only at the end. A file whose path is empty is not written.
    """
    return SCRIPT.format(
        pilot=shlex.quote(order.pilot_id),
        site=_plain(order.site),
        ce=_plain(order.ce),
        policy="".join(
            f"export {name}={shlex.quote(value)}\n" for name, value in environment(order.policy).items()
        ),
        log=f"exec >> {log_file} 2>&1\n" if log_file else "",
        agent=shlex.join(agent),
        config=config,
        token=token,
        report=f"echo $code > {exit_file}" if exit_file else ":",
    )


def _plain(text: str) -> str:
    return "".join(c for c in text if c.isalnum() or c in ".-_")
