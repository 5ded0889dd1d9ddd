"""`wms submit`: reads descriptions, uploads input files, submits the jobs, and prints their ids."""

import sys
import uuid
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from wms.cli.fields import fields_of
from wms.cli.inputs import Inputs, inputs_of, with_inputs
from wms.cli.options import USUAL, CommonOptions
from wms.cli.printing import jobs_of, note, show, show_json, show_pretty_json
from wms.cli.session import OK, with_client
from wms.cli.submit_options import RUN, HowOptions, SubmitOptions
from wms.cli.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wms.client import Client, Submission
    from wms.jobdesc import JobDescription

SHOWN = 3
FILES_SHOWN = 20
NO_OPTIONS = SubmitOptions()


def submit(
    *words: Annotated[
        str, Parameter(group=RUN, help="-- PROGRAM ARGUMENTS, or files of descriptions, or - for stdin")
    ],
    options: SubmitOptions = NO_OPTIONS,
    common: CommonOptions = USUAL,
) -> int:
    """Submit jobs: a program, an array, or descriptions from files.

    When the command returns, the jobs are durable, and their ids are printed. A program with a relative path such as ./prog is sent in the input sandbox. Options override the descriptions in files.

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
      wms submit --lenient job.jsdl
      generate | wms submit - --id nightly-17 --json
    """
    from wms.cli import job_descriptions, retry

    program = job_descriptions.PROGRAM_MARK in words
    words = job_descriptions.words_of(words)
    said, how, paths = _fields(options), options.how, options.files.input or []
    if old_jobs := options.run.retry_of:
        retry.check(words, said)

        async def again(client: "Client") -> int:
            old = await retry.descriptions_of(client, old_jobs, said)
            ready = (old, retry.inputs_beside(old, paths))
            return _show_plan(*ready, common) if how.dry_run else await _submit(client, ready, how, common)

        return with_client(common, again)
    given = job_descriptions.described(words, said, lenient=how.lenient, program=program)
    descriptions, files = given.descriptions, inputs_of(given.descriptions, paths, given.files)
    if how.dry_run:
        return _show_plan(descriptions, files, common)
    return with_client(common, lambda client: _submit(client, (descriptions, files), how, common))


def _fields(options: SubmitOptions) -> dict[str, Any]:
    """Return the fields of a description that the options set, by name. Raise Rejected if an option is malformed."""
    from wms.cli.job_descriptions import attributes, pairs
    from wms.cli.parameter_table import lists_of, series_of, together

    run = options.run
    made = {
        "parameters": together(
            lists_of(run.parameter or (), run.table), series_of(run.series or (), run.array)
        ),
        "environment": pairs(run.env or (), "--env"),
        "attributes": attributes(options.where.attribute or ()),
    }
    found = {name: value for name, value in made.items() if value}
    if file := options.where.preferences:
        found["preferences"] = _preferences(file)
    for group in options.groups():
        found |= fields_of(group)
    return found


def _preferences(file: str) -> Any:
    """Return the preferences of a document of their own, as plain data. Raise Rejected, with the file's name, if it holds none."""
    import msgspec

    from wms.cli.description_files import named
    from wms.cli.job_descriptions import bytes_of
    from wms.jobdesc.languages.preferences_xml import preferences_of
    from wms.jobdesc.problem import InvalidDescription

    try:
        return msgspec.to_builtins(preferences_of(bytes_of(file)))
    except InvalidDescription as invalid:
        raise InvalidDescription(named(file, invalid)) from None


async def _submit(
    client: "Client",
    jobs: "tuple[list[JobDescription], list[Inputs]]",
    how: HowOptions,
    common: CommonOptions,
) -> int:
    taken = await _taken(client, await with_inputs(client, *jobs), how)
    for warning in taken.warnings:
        note(f"warning: {warning}")
    if any(each.dispatch == "direct" for each in jobs[0]):
        note(
            "warning: jobs that are sent directly are not isolated; elements take them only of owners whom they trust"
        )
    _show_taken(taken, common, wait=how.wait)
    if sys.stdout.isatty() and not common.json:
        await _warn_of_isolation(client)
    if not how.wait:
        return OK
    return await wait_for(client, taken.selector(), common, submission=taken)


async def _warn_of_isolation(client: "Client") -> None:
    """Say, to a person, which elements do not isolate payloads. The jobs are submitted: no fault of the question matters."""
    import contextlib

    from wms.cli.payload_isolation import isolation_warning
    from wms.errors import Rejected, Unavailable

    with contextlib.suppress(Rejected, Unavailable):
        if warning := isolation_warning(await client.sites()):
            note(warning)


async def _taken(client: "Client", ready: "list[JobDescription]", how: HowOptions) -> "Submission":
    import asyncio

    # Made here, so that an interrupted user learns it.
    submission_id = how.id or uuid.uuid4().hex
    try:
        return await client.submit(ready, id=submission_id, strict=how.strict, hold=how.hold)
    except asyncio.CancelledError:
        note(f"wms: the jobs may have been taken: `wms jobs --submission {submission_id}` tells;")
        note(f"  the same command with --id {submission_id} submits nothing twice")
        raise


def _sentence(taken: "Submission") -> str:
    done = "had been submitted before" if taken.repeated else "submitted"
    return f"{jobs_of(taken.count)} {done}: {taken}"


def _show_taken(taken: "Submission", common: CommonOptions, *, wait: bool) -> None:
    """Print the ids of the submitted jobs on standard output, and notes on standard error.

    If `wait` is True, the command goes on to wait for the jobs, so less is printed.
    """
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


def _show_plan(descriptions: "list[JobDescription]", files: list[Inputs], common: CommonOptions) -> int:
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
    """Return a description as plain data for people, with only the first values of each parameter list. --json prints all values."""
    from msgspec import to_builtins

    whole: dict[str, Any] = to_builtins(description)
    if lists := whole.get("parameters"):
        whole["parameters"] = {name: _first(values) for name, values in lists.items()}
    return whole


def _first(values: "Sequence[str]") -> list[str]:
    more = len(values) - SHOWN
    return [*values[:SHOWN], f"... and {more:,} more"] if more > 0 else list(values)


def _some(names: list[str], common: CommonOptions) -> list[str]:
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
