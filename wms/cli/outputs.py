"""`wms output`: fetches the files that jobs kept."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wms.cli.options import NO_CHOICE, USUAL, CommonOptions, Flag, Jobs, Many, SelectionOptions
from wms.cli.output_layout import OutputLayout
from wms.cli.printing import jobs_of, note, show, show_json
from wms.cli.quantities import amount
from wms.cli.session import NOT_ALLOWED, OK, SOME_FAILED, with_client
from wms.cli.waiting import none_found

if TYPE_CHECKING:
    from wms.client import Client, Selector
    from wms.client.files import Fetched
    from wms.errors import Rejected

AT_ONCE = 8
FAULTS_SHOWN = 3


def output(
    *ids: Jobs,
    chosen: SelectionOptions = NO_CHOICE,
    to: Annotated[Path, Parameter(name=("--to", "-o"), show_default=lambda _: "here")] = Path(),
    flat: Flag = False,
    pattern: str = "",
    only: Many | None = None,
    overwrite: Flag = False,
    quiet: Flag = False,
    common: CommonOptions = USUAL,
) -> int:
    """Fetch the files that jobs kept.

    Each job's output sandbox goes into a directory named by the job's id, or to the paths of --pattern. It is fetched whole or not at all. The exit code is 1 if a job had no output or it could not be fetched.

    For example:
      wms output 17
      wms output 100-200 --to results
      wms output --group fits --state Done --to results --flat
      wms output --group fits --to results --only 'out/*.json' --quiet
      wms output --group fits --to results --pattern '{name}/{file}'
      wms output 100-200 --pattern '{sample}-{id}/{file}'
      wms output --name 'sim*' --state Done --to results --json

    Parameters
    ----------
    to
        The directory in which the jobs' directories, or the paths of --pattern, are made.
    flat
        Put all files into one directory: a/b.txt of job 17 becomes 17-a_b.txt.
    pattern
        The path of each file below --to: {file} is its path in the output, {id}, {name} and {group} are the job's, {n} is its index in a sweep, {NAME} its parameter.
    only
        Keep only files whose paths match this pattern, in which * and ? stand for any characters; may be repeated.
    overwrite
        Replace existing files.
    quiet
        Print one line for all jobs, in place of one for each.
    """
    layout = OutputLayout(
        to, _pattern(pattern, flat=flat), flat=flat, overwrite=overwrite, only=tuple(only or ())
    )
    selector = chosen.selector(ids)
    return with_client(common, lambda client: _fetch_all(client, selector, layout, common, quiet=quiet))


def _pattern(pattern: str, *, flat: bool) -> str:
    from wms.errors import Rejected

    if flat and pattern:
        raise Rejected("BAD_OPTION", "--flat and --pattern say two different things", "keep one of them")
    if pattern and "{file}" not in pattern:
        raise Rejected("BAD_OPTION", "--pattern has no {file}: all files would be one", "end it with /{file}")
    return "{id}-{file}" if flat else pattern


async def _fetch_all(
    client: "Client", selector: "Selector", layout: OutputLayout, common: CommonOptions, *, quiet: bool
) -> int:
    import asyncio

    from wms.cli.progress import count_bar
    from wms.errors import Rejected

    gate = asyncio.Semaphore(AT_ONCE)

    async def one(job_id: int) -> "Fetched | Rejected":
        async with gate:
            try:
                return await layout.fetch(client, job_id)
            except Rejected as fault:
                return fault
            finally:
                step()

    found = [job.job_id async for job in client.jobs(selector)]
    with count_bar("fetching outputs", len(found)) as step:
        results = await asyncio.gather(*map(one, found))
    fetched = [each for each in results if not isinstance(each, Rejected)]
    faults = [each for each in results if isinstance(each, Rejected)]
    _tell(fetched, faults, common, quiet=quiet)
    if not found:
        note(none_found(selector))
        return NOT_ALLOWED
    return SOME_FAILED if faults else OK


def _tell(fetched: "list[Fetched]", faults: "list[Rejected]", common: CommonOptions, *, quiet: bool) -> None:
    for fault in faults[: FAULTS_SHOWN if quiet else None]:
        note(f"{fault.message}" + (f" ({fault.remedy})" if fault.remedy else ""))
    if common.json:
        failed = [{"code": fault.code, "message": fault.message} for fault in faults]
        show_json({"fetched": fetched, "failed": failed})
        return
    if quiet:
        without = f"; {jobs_of(len(faults))} without" if faults else ""
        show(f"{_amount(fetched)} of {jobs_of(len(fetched))}{without}")
        return
    for each in fetched:
        show(f"{each.directory}  job {each.job_id}: {_amount([each])}")


def _amount(fetched: "list[Fetched]") -> str:
    files = sum(each.files for each in fetched)
    size = amount(sum(each.bytes for each in fetched))
    return f"1 file, {size}" if files == 1 else f"{files:,} files, {size}"
