"""`wms output`: fetch what jobs kept."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wms.cli.options import NO_CHOICE, USUAL, Chosen, Common, Flag, Jobs
from wms.cli.printing import note, show, show_json
from wms.cli.quantities import amount
from wms.cli.session import NOT_ALLOWED, OK, SOME_FAILED, with_client
from wms.cli.waiting import none_found

if TYPE_CHECKING:
    from wms.client import Client, Selector
    from wms.client.files import Fetched
    from wms.errors import Rejected

AT_ONCE = 8


def output(
    *ids: Jobs,
    chosen: Chosen = NO_CHOICE,
    to: Annotated[Path, Parameter(name=("--to", "-o"), show_default=lambda _: "here")] = Path(),
    overwrite: Flag = False,
    common: Common = USUAL,
) -> int:
    """Fetch the files that jobs kept.

    Each job's output sandbox goes into a directory named by the job's id. Each comes whole or not at all. Exit code 1 when some job had none or could not be fetched.

    For example:
      wms output 17
      wms output 100-200 --to results
      wms output --name 'sim*' --state Done --to results --json

    Parameters
    ----------
    to
        Where the directories are made.
    overwrite
        Replace files that are there already.
    """
    selector = chosen.selector(ids)
    return with_client(common, lambda client: _fetch_all(client, selector, to, common, overwrite=overwrite))


async def _fetch_all(
    client: "Client", selector: "Selector", to: Path, common: Common, *, overwrite: bool
) -> int:
    import asyncio

    from wms.errors import Rejected

    gate = asyncio.Semaphore(AT_ONCE)

    async def one(job_id: int) -> "Fetched | Rejected":
        async with gate:
            try:
                return await client.output(job_id, to / str(job_id), overwrite=overwrite)
            except Rejected as fault:
                return fault

    found = [job.job_id async for job in client.jobs(selector)]
    results = await asyncio.gather(*map(one, found))
    fetched = [each for each in results if not isinstance(each, Rejected)]
    faults = [each for each in results if isinstance(each, Rejected)]
    _tell(fetched, faults, common)
    if not found:
        note(none_found(selector))
        return NOT_ALLOWED
    return SOME_FAILED if faults else OK


def _tell(fetched: "list[Fetched]", faults: "list[Rejected]", common: Common) -> None:
    for fault in faults:
        note(f"{fault.message}" + (f" ({fault.remedy})" if fault.remedy else ""))
    if common.json:
        failed = [{"code": fault.code, "message": fault.message} for fault in faults]
        show_json({"fetched": fetched, "failed": failed})
        return
    for each in fetched:
        files = "1 file" if each.files == 1 else f"{each.files:,} files"
        show(f"{each.directory}  {files}, {amount(each.bytes)}")
