"""`wms submit`."""

import sys
import uuid
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Group, Parameter

from wms.cli.fields import fields_of
from wms.cli.inputs import Inputs, inputs_of, with_inputs
from wms.cli.options import USUAL, Bytes, Common, Duration, Flag, Many, Memory
from wms.cli.printing import jobs_of, note, show, show_json, show_pretty_json
from wms.cli.session import OK, with_client
from wms.cli.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wms.client import Client, Submission
    from wms.jobdesc import JobDescription

RUN = Group("What to run", sort_key=1)
NEEDS = Group("What it needs", sort_key=2)
WHERE = Group("Where it may run", sort_key=3)
FILES = Group("Files", sort_key=4)
HOW = Group("How to submit", sort_key=5)

NO_WORDS: list[str] = []
SHOWN = 3
FILES_SHOWN = 20


def _in(group: Group, **more: Any) -> Parameter:
    return Parameter(group=group, **more)


def submit(
    *words: Annotated[str, _in(RUN, help="-- PROGRAM ARGUMENTS, or files of descriptions, or - for stdin")],
    name: Annotated[str | None, _in(RUN)] = None,
    array: Annotated[int | None, _in(RUN)] = None,
    parameter: Annotated[Many | None, _in(RUN, name=("--parameter", "--param"))] = None,
    table: Annotated[str | None, _in(RUN)] = None,
    series: Annotated[Many | None, _in(RUN)] = None,
    env: Annotated[Many | None, _in(RUN, name=("--env", "-e"))] = None,
    group: Annotated[str | None, _in(RUN)] = None,
    retry_of: Annotated[Many | None, _in(RUN)] = None,
    cpu_time: Annotated[Duration | None, _in(NEEDS)] = None,
    wall_time: Annotated[Duration | None, _in(NEEDS)] = None,
    memory: Annotated[Memory | None, _in(NEEDS)] = None,
    disk: Annotated[Memory | None, _in(NEEDS)] = None,
    max_memory: Annotated[Memory | None, _in(NEEDS)] = None,
    processors: Annotated[int | None, _in(NEEDS)] = None,
    min_processors: Annotated[int | None, _in(NEEDS)] = None,
    max_processors: Annotated[int | None, _in(NEEDS)] = None,
    whole_node: Annotated[Flag, _in(NEEDS)] = False,
    tag: Annotated[Many | None, _in(NEEDS)] = None,
    platform: Annotated[Many | None, _in(NEEDS)] = None,
    site: Annotated[Many | None, _in(WHERE)] = None,
    banned_site: Annotated[Many | None, _in(WHERE)] = None,
    ce: Annotated[Many | None, _in(WHERE)] = None,
    station: Annotated[Many | None, _in(WHERE)] = None,
    grid_middleware: Annotated[Many | None, _in(WHERE)] = None,
    pilot_type: Annotated[Many | None, _in(WHERE)] = None,
    submit_pool: Annotated[Many | None, _in(WHERE)] = None,
    setup: Annotated[str | None, _in(WHERE)] = None,
    job_type: Annotated[str | None, _in(WHERE)] = None,
    requirements: Annotated[str | None, _in(WHERE)] = None,
    rank: Annotated[str | None, _in(WHERE)] = None,
    attribute: Annotated[Many | None, _in(WHERE)] = None,
    input: Annotated[Many | None, _in(FILES, name=("--input", "-i"))] = None,  # noqa: A002
    output: Annotated[Many | None, _in(FILES, name=("--output", "-o"))] = None,
    stdout_limit: Annotated[Bytes | None, _in(FILES)] = None,
    stderr_limit: Annotated[Bytes | None, _in(FILES)] = None,
    after: Annotated[Many | None, _in(HOW)] = None,
    after_any: Annotated[Many | None, _in(HOW)] = None,
    input_from: Annotated[Many | None, _in(FILES)] = None,
    priority: Annotated[int | None, _in(HOW)] = None,
    max_attempts: Annotated[int | None, _in(HOW)] = None,
    success_exit_code: Annotated[list[int] | None, _in(HOW, negative=())] = None,
    id: Annotated[str | None, _in(HOW)] = None,  # noqa: A002
    dry_run: Annotated[Flag, _in(HOW)] = False,
    strict: Annotated[Flag, _in(HOW)] = False,
    hold: Annotated[Flag, _in(HOW)] = False,
    wait: Annotated[Flag, _in(HOW)] = False,
    common: Common = USUAL,
) -> int:
    """Submit jobs: a program, an array, or descriptions from files.

    When this returns the jobs are taken and durable; their ids are printed. A program given by a relative path such as
    ./prog goes along in the input sandbox. Flags given together with files go before what the files say.

    For example:
      wms submit -- echo hello
      wms submit --cpu-time 10m --memory 2G --site A --tag gpu --array 1000 -- ./prog {n}
      wms submit --input data/ --output 'out/*.json' --wait -- python3 data/run.py
      wms submit --param file=a.txt,b.txt --input '{file}' -- wc -l {file}
      wms submit --table runs.csv --input 'data/{sample}.root' -- ./fit data/{sample}.root {seed}
      wms submit --param file=@files.txt --param seed=@seeds.txt --name 'fit {file}' -- ./fit {file} {seed}
      wms submit --strict --memory 64G --tag gpu -- ./train
      wms submit --requirements 'other.GlueCEPolicyMaxCPUTime > 60' --rank other.GlueCEStateFreeJobSlots -- ./prog
      wms submit --group fits --hold --array 100 -- ./fit {n}
      wms submit --series seed=start=10,step=5,count=100 -- ./prog {seed}
      wms submit --whole-node --min-processors 4 -- ./prog
      wms submit --retry-of 17,20-25 --memory 4G
      wms submit --after 17,20-25 -- ./publish
      wms submit --input-from 17 -- sh -c 'sort 17/*.txt'
      wms submit jobs.toml
      generate | wms submit - --id nightly-17 --json

    Parameters
    ----------
    name
        A name to find the jobs by; {n} stands for the index in an array.
    array
        Make this many jobs, up to a million; {n} in arguments, environment, name and outputs stands for 0, 1, 2, ...
    parameter
        NAME=V1,V2,... or NAME=@FILE with a value on each line: one job for each value, which replaces {NAME}. Several lists have the same length.
    table
        A CSV file (or .tsv), whose first line names the parameters: one job for each further line.
    series
        NAME=start=10,step=5,factor=1,count=3: one job for each value, which is the one before times the factor, plus the step; without a count as many as --array says.
    env
        NAME=VALUE in the job's environment. May be repeated.
    group
        The job group: a name for jobs that belong together, to select them by with --group.
    retry_of
        Ids of jobs, as 7,100-200: a new job like each of them, with the options given here over its own. May be repeated.
    cpu_time
        Processor time: 600, 10m, 1h30m. Default: 1 day. Enforced.
    wall_time
        Wall-clock time: 600, 10m, 1h30m. Enforced.
    memory
        Memory: 512M, 2G. Enforced.
    max_memory
        Memory that it may use at most where there is so much, in place of the limit by --memory.
    disk
        Disk space in the job's directory: 500M, 10G. Enforced.
    processors
        Processors on one node.
    min_processors
        In place of --processors: how many it needs at least.
    max_processors
        With --min-processors: how many it can use at most.
    whole_node
        A node of its own.
    tag
        What the resource must have. May be repeated.
    platform
        One of these platforms. May be repeated.
    site
        Only at these sites. May be repeated.
    banned_site
        Not at these sites. May be repeated.
    ce
        Only at these computing elements. May be repeated.
    station
        Where the site advertises one of these SAM stations. May be repeated.
    grid_middleware
        Only where pilots are sent by one of these middlewares. May be repeated.
    pilot_type
        Only for pilots of one of these types, such as private. May be repeated.
    submit_pool
        Only for pilots of one of these submit pools. May be repeated.
    setup
        The setup that its pilots belong to; default: default.
    job_type
        The type of the jobs, which sites may refuse.
    requirements
        A ClassAd expression that must be true of the resource, whose attributes are other.NAME: Site, Tags, MaxRAM, what its site advertises.
    rank
        A ClassAd expression: pilots go rather where its number is greater.
    attribute
        NAME=VALUE that the expressions of sites may look at; true, false and numbers are such, all else is a text. May be repeated.
    input
        A file or directory to send along; a relative one keeps its path. In a sweep '{NAME}' names another one for each job. May be repeated.
    output
        Pattern of files to keep: '*.root', 'out/**'. May be repeated.
    stdout_limit
        How much of the standard output is kept: 64K, 10M.
    stderr_limit
        How much of the standard error is kept.
    after
        Ids of jobs, as 7,100-200: these start once all of those are Done. Until then they are Held (DEPENDENCY). May be repeated.
    after_any
        Likewise, once all of those have ended, whichever way. May be repeated.
    input_from
        Ids of jobs that must be Done first, and whose outputs these get, each in a directory named by its id: 17/out.root. May be repeated.
    priority
        0 to 10 among your own jobs; default: 1.
    max_attempts
        How often a job may be started before it fails for good.
    success_exit_code
        The job is Done when its program ends with this code; default: 0. May be repeated.
    id
        Yours for this submission: again with the same id, nothing is submitted twice.
    dry_run
        Check everything and show what would be sent; send nothing.
    strict
        Submit nothing if a job could run nowhere now. Without it, a warning says so.
    hold
        Submit the jobs Held: none starts before `wms release`.
    wait
        Wait until the jobs have ended; exit code 1 unless all are Done.
    """
    given = locals()
    from wms.cli import describing, retry
    from wms.cli.parameter_table import lists_of, series_of, together

    words = describing.words_of(words)
    flags = fields_of(
        given
        | {
            "parameter": together(
                lists_of(parameter or NO_WORDS, table), series_of(series or NO_WORDS, array)
            ),
            "env": describing.pairs(env or NO_WORDS, "--env"),
            "attribute": describing.attributes(attribute or NO_WORDS),
            "whole_node": whole_node or None,
        }
    )
    how = How(id or uuid.uuid4().hex, strict, hold, wait)
    if retry_of:
        retry.check(words, flags)

        async def again(client: "Client") -> int:
            old = await retry.descriptions_of(client, retry_of, flags)
            ready = (old, retry.inputs_beside(old, input or NO_WORDS))
            return _show_plan(*ready, common) if dry_run else await _submit(client, ready, how, common)

        return with_client(common, again)
    descriptions = describing.described(words, flags)
    files = inputs_of(descriptions, input or NO_WORDS)
    if dry_run:
        return _show_plan(descriptions, files, common)
    return with_client(common, lambda client: _submit(client, (descriptions, files), how, common))


class How(NamedTuple):
    """How to submit."""

    id: str
    strict: bool
    hold: bool
    wait: bool


async def _submit(
    client: "Client", jobs: "tuple[list[JobDescription], list[Inputs]]", how: How, common: Common
) -> int:
    taken = await _taken(client, await with_inputs(client, *jobs), how)
    for warning in taken.warnings:
        note(f"warning: {warning}")
    _show_taken(taken, common, wait=how.wait)
    if not how.wait:
        return OK
    return await wait_for(client, taken.selector(), common, submission=taken)


async def _taken(client: "Client", ready: "list[JobDescription]", how: How) -> "Submission":
    import asyncio

    try:
        return await client.submit(ready, id=how.id, strict=how.strict, hold=how.hold)
    except asyncio.CancelledError:
        note(f"wms: the jobs may have been taken: `wms jobs --submission {how.id}` tells;")
        note(f"  the same command with --id {how.id} submits nothing twice")
        raise


def _sentence(taken: "Submission") -> str:
    done = "had been submitted before" if taken.repeated else "submitted"
    return f"{jobs_of(taken.count)} {done}: {taken}"


def _show_taken(taken: "Submission", common: Common, *, wait: bool) -> None:
    """Show the ids on standard output, whatever follows; what a person reads beside goes to standard error."""
    if common.json:
        if not wait:
            show_json(
                {
                    "id": taken.id,
                    "ids": taken.ids,
                    "count": taken.count,
                    "repeated": taken.repeated,
                    "foreseen": taken.foreseen,
                }
            )
    elif sys.stdout.isatty():
        show(_sentence(taken))
        if not wait:
            show(f"  wms wait {taken}" if taken.count <= SHOWN else f"  wms status {taken}; wms wait {taken}")
    else:
        if taken.repeated or wait:
            note(_sentence(taken))
        show(str(taken))
        sys.stdout.flush()


def _show_plan(descriptions: "list[JobDescription]", files: list[Inputs], common: Common) -> int:
    from wms.client.submission import messages
    from wms.jobdesc import jobs_in

    sent = messages(descriptions, "dry-run", "")
    count_messages = len(sent.values) + len(sent.submits)
    count = sum(map(jobs_in, descriptions))
    plan = {
        "jobs": count,
        "messages": count_messages,
        "descriptions": descriptions if common.json else list(map(_in_short, descriptions[:SHOWN])),
        "input_files": _some(sorted(set[str]().union(*(each.names() for each in files))), common),
        "first_commands": _first_commands(descriptions),
    }
    if common.json:
        show_json(plan)
        return OK
    show_pretty_json(plan)
    more = (
        f"; the first {SHOWN} of {len(descriptions):,} descriptions are shown"
        if len(descriptions) > SHOWN
        else ""
    )
    note(
        f"nothing was sent; this would submit {jobs_of(count)} in {_counted(count_messages, 'message')}{more}"
    )
    return OK


def _in_short(description: "JobDescription") -> dict[str, Any]:
    """Return a description with only the first values of its lists of parameters; --json has all."""
    from msgspec import to_builtins

    whole: dict[str, Any] = to_builtins(description)
    if lists := whole.get("parameters"):
        whole["parameters"] = {name: _first(values) for name, values in lists.items()}
    return whole


def _first(values: "Sequence[str]") -> list[str]:
    more = len(values) - SHOWN
    return [*values[:SHOWN], f"... and {more:,} more"] if more > 0 else list(values)


def _some(names: list[str], common: Common) -> list[str]:
    return (
        names
        if common.json or len(names) <= FILES_SHOWN
        else [*names[:FILES_SHOWN], f"... and {len(names) - FILES_SHOWN:,} more"]
    )


def _counted(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def _first_commands(descriptions: "list[JobDescription]") -> list[str]:
    import shlex
    from itertools import islice

    from wms.jobdesc import argv, jobs_in

    return [
        shlex.join(argv(each, n))
        for each, n in islice(
            ((each, n) for each in descriptions for n in range(min(jobs_in(each), SHOWN))), SHOWN
        )
    ]
