"""`wms show`: a job's description, and how the broker ranked and placed the job.

`wms predictions`: how well the broker's predictions came true.
"""

from typing import TYPE_CHECKING, Literal

from wms.cli.options import USUAL, CommonOptions, Flag, Jobs
from wms.cli.printing import note, show, show_json, show_pretty_json, show_table
from wms.cli.quantities import amount, span, stamp
from wms.cli.session import NOT_ALLOWED, OK, with_client
from wms.cli.table import ALWAYS, TableColumn
from wms.cli.usage_curve import usage_lines
from wms.cli.waiting import none_found

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wms.client import Client, Selector
    from wms.messages.replies import (
        AgreementLine,
        CalibrationLine,
        JobRanking,
        PlacementLine,
        PredictedPart,
        RankedElement,
    )
    from wms.messages.reports import StagingReport

ELEMENTS = (
    TableColumn("#>", ALWAYS),
    TableColumn("SITE", ALWAYS),
    TableColumn("CE", 1),
    TableColumn("TOTAL>", ALWAYS),
    TableColumn("90 %", 2),
    TableColumn("IN>", 3),
    TableColumn("WAIT>", 3),
    TableColumn("RUN>", 3),
    TableColumn("OUT>", 3),
    TableColumn("SOURCES", 4),
    TableColumn("AGREEMENT", 5),
    TableColumn("WHY", 1, "wrap", 24),
)
PLACEMENTS = (
    TableColumn("TRY>", ALWAYS),
    TableColumn("SITE", ALWAYS),
    TableColumn("CE", 1),
    TableColumn("STATE", ALWAYS),
    TableColumn("BY", 2),
    TableColumn("SINCE", 3),
    TableColumn("START", 4),
    TableColumn("RESERVATION", 5),
    TableColumn("WHY", 1, "wrap", 24),
)
AGREEMENTS = ("AGREEMENT", "SITE", "STATE", "START", "RESERVATION", "WHY")
CALIBRATIONS = (
    TableColumn("SITE", ALWAYS),
    TableColumn("PART", ALWAYS),
    TableColumn("SOURCE", ALWAYS),
    TableColumn("N>", 1),
    TableColumn("SCORED>", 1),
    TableColumn("IN 90 %>", 1),
    TableColumn("RATIO>", 2),
    TableColumn("OFF BY>", 3),
)
PARTS = ("stage_in", "waiting", "execution", "stage_out")


def show_job(
    job: Jobs,
    /,
    *more: Jobs,
    ranking: Flag = False,
    common: CommonOptions = USUAL,
) -> int:
    """Show the records of jobs, and the rankings that led to their places.

    Without --ranking the job's description is shown. The ranking has each computing element with the predicted time to delivery and its four parts (stage-in, wait, run, stage-out), the interval that holds it in 90 of 100 cases, the sources of the predictions, and why others were rejected; then each placement and what became of it. With --json all of it is one document.

    For example:
      wms show 17
      wms show 17,20-25
      wms show 17 --ranking
      wms show 17 --ranking --json

    Parameters
    ----------
    ranking
        Show where the broker could place the job, and where it placed it.
    """
    from wms.client.selector import select

    selector = select((job, *more))
    shown = _ranking if ranking else _record

    async def work(client: "Client") -> int:
        found = await named_jobs(client, selector)
        for n, job_id in enumerate(found):
            if n and not common.json:
                show()
            await shown(client, job_id, common)
        if not found:
            note(none_found(selector))
        return OK if found else NOT_ALLOWED

    return with_client(common, work)


async def named_jobs(client: "Client", selector: "Selector") -> list[int]:
    """Return the ids of the jobs that the user named and may see. A single id is returned unlooked: its own fault says more."""
    if len(selector.ids) == 1 and selector.ids[0][0] == selector.ids[0][1]:
        return [selector.ids[0][0]]
    return [job.job_id async for job in client.jobs(selector)]


async def _record(client: "Client", job_id: int, common: CommonOptions) -> None:
    detail = await client.show(job_id)
    if common.json:
        show_json(detail)
        return
    line = detail.job
    show(f"job {line.job_id}: {line.state}{f' at {line.site}' if line.site else ''} ({line.reason})")
    show(f"owner {line.owner}@{line.owner_group} of {line.vo}, submitted {stamp(line.submitted_at)}")
    if detail.lease and detail.lease.staging:
        show(staging_words(detail.lease.staging))
    for text in usage_lines(detail.attempts[-1]) if detail.attempts else ():
        show(text)
    show_pretty_json(detail.description)


def staging_words(said: "StagingReport") -> str:
    """Return the progress of a job's transfers as text: `stage-in: 1 of 3 files, 12.0 MiB of 40.0 MiB`."""
    total = "" if said.bytes_total is None else f" of {amount(said.bytes_total)}"
    return f"{said.part.replace('_', '-')}: {said.files_done} of {said.files} files, {amount(said.bytes_done)}{total}"


async def _ranking(client: "Client", job_id: int, common: CommonOptions) -> None:
    found = await client.ranking(job_id)
    if common.json:
        show_json(found)
    else:
        _show_ranking(found)


def _show_ranking(found: "JobRanking") -> None:
    at = f", ranked {stamp(found.ranked_at)}" if found.ranked_at else ""
    show(f"job {found.job_id}: {found.state}; the broker's record: {found.phase or 'not begun'}{at}")
    if found.reason:
        show(f"  {found.reason}: {found.reason_text}")
    if found.elements:
        show_table(ELEMENTS, map(element_row, found.elements))
    if found.elements_total > len(found.elements):
        note(f"{len(found.elements):,} of {found.elements_total:,} computing elements are shown")
    if found.placements:
        show()
        show_table(PLACEMENTS, map(_placement_row, found.placements))
    if found.agreements:
        show()
        show_table(AGREEMENTS, map(_agreement_row, found.agreements))


def element_row(each: "RankedElement") -> tuple[object, ...]:
    """Return the table row that shows a computing element as the broker ranked or rejected it for a job."""
    parts = {part.part: part for part in each.parts}
    interval = "-" if each.low is None or each.high is None else f"{span(each.low)}-{span(each.high)}"
    return (
        each.rank or "-",
        each.site,
        each.ce,
        "-" if each.seconds is None else span(each.seconds),
        interval,
        *("-" if name not in parts else span(parts[name].seconds) for name in PARTS),
        sources(each.parts) or "-",
        each.agreement or "-",
        "; ".join(each.reasons),
    )


def sources(parts: "Iterable[PredictedPart]") -> str:
    """Return the names of the predictors that gave these parts of a prediction, each once, with commas between them.

    A source that predicted nothing is left out.
    """
    return ",".join(dict.fromkeys(part.source for part in parts if part.source != "none"))


def _placement_row(each: "PlacementLine") -> tuple[object, ...]:
    why = f"{each.reason}: {each.reason_text}" if each.reason_text else each.reason
    start = stamp(each.start_at) if each.start_at else "-"
    since = stamp(each.changed_at)
    return (
        each.attempt, each.site, each.ce, each.state, each.dispatch, since, start, each.reservation or "-", why,
    )  # fmt: skip


def _agreement_row(each: "AgreementLine") -> tuple[object, ...]:
    why = f"{each.reason}: {each.reason_text}" if each.reason_text else each.reason
    start = stamp(each.start_at) if each.start_at else "-"
    return each.agreement_id, each.site, each.state, start, each.reservation or "-", why


def predictions(*, by: Literal["site", "predictor", "both"] = "both", common: CommonOptions = USUAL) -> int:
    """Show how true the broker's predictions were.

    IN 90 % is the percentage of predictions whose interval contained the actual time, and should be near 90; RATIO is the median of the actual time divided by the predicted time. With --json each line is one object.

    For example:
      wms predictions
      wms predictions --by site
      wms predictions --by predictor --json

    Parameters
    ----------
    by
        Sum up by site, by predictor, or by both.
    """

    async def work(client: "Client") -> int:
        lines = await client.predictions(by)
        if common.json:
            for each in lines:
                show_json(each)
        else:
            show_table(
                CALIBRATIONS, map(calibration_row, lines), empty="no job was placed by the broker lately"
            )
        return OK

    return with_client(common, work)


def calibration_row(each: "CalibrationLine") -> tuple[object, ...]:
    """Return the table row that shows how well the predictions for a site, or of a predictor, came true."""
    return (
        each.site or "all",
        each.part,
        each.source or "all",
        f"{each.predictions:,}",
        f"{each.scored:,}",
        "-" if each.covered is None else f"{each.covered:.0%}",
        "-" if each.ratio is None else f"{each.ratio:.2f}",
        "-" if each.error_seconds is None else span(each.error_seconds),
    )
