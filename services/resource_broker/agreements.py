"""The messages to sites by which the resource broker asks for reservations (agreements) for jobs, confirms and cancels them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from math import ceil

import msgspec

from services.resource_broker.brokered_jobs import BrokeredJob
from services.resource_broker.next_step import AgreementRequest
from wms.db.agreement import ReservableElement
from wms.db.database import Transaction
from wms.dispatch.reservation import LATE_SECONDS, STARTING_SECONDS
from wms.ids import AgreementId, CeId
from wms.messages.agreements import OFFERS_TOPIC, Cancel, Confirm, Reserve
from wms.messages.replies import RankedElement

LONGEST_SECONDS = 366 * 86_400.0


def request(
    tx: Transaction,
    wanted: Iterable[tuple[BrokeredJob, AgreementRequest]],
    lifetime_seconds: float,
    reservable: Mapping[CeId, ReservableElement],
) -> None:
    """Send offers of temporary agreements to sites; the messages are sent when the transaction commits.

    `wanted` are jobs, each with the agreement to ask for. An agreement that is not confirmed expires `lifetime_seconds` after
    its grant. `reservable` are the elements that take offers, with the bounds that their sites set.
    """
    for job, each in wanted:
        there = reservable.get(each.place)
        most = there.template.max_seconds if there else LONGEST_SECONDS
        tx.send(OFFERS_TOPIC, each.place.site, _offer(job, each, lifetime_seconds, most))


def _offer(job: BrokeredJob, each: AgreementRequest, lifetime_seconds: float, most: float) -> Reserve:
    owner, group, vo = job.record.identity
    window = job.facts.window
    # The program starts in the job's window, so the reservation, in which its files are fetched first, begins so much earlier.
    fetching = timedelta(seconds=0.0 if each.start else each.fetching_seconds)
    return Reserve(
        agreement_id=AgreementId(each.agreement_id),
        job_id=job.record.job_id,
        vo=vo,
        owner=owner,
        group=group,
        site=each.place.site,
        ce=each.place.ce,
        cpus=job.description.min_processors or job.description.processors or 1,
        duration_seconds=_reserved(_duration(job) + each.moving_seconds, most),
        earliest_start=each.start or window.earliest - fetching,
        latest_start=window.latest and window.latest - fetching,
        flexible=each.start is None and _is_flexible(job),
        expires_in_seconds=lifetime_seconds,
    )


def with_moving(
    wanted: AgreementRequest, ranking: Iterable[RankedElement], dispatch: str
) -> AgreementRequest:
    """Return a request with the seconds to reserve for moving the job's files to and from its element.

    They are the upper prediction in `ranking`, which is enough in nine of ten cases. The pilot moves the files within its
    reservation, so that these seconds must be reserved too. For a job that is sent directly the middleware fetches them before.
    """
    there = [each for each in ranking if (each.site, each.ce) == wanted.place]
    high = {part.part: float(part.high) for each in there for part in each.parts}
    fetching = high.get("stage_in", 0.0)
    return msgspec.structs.replace(
        wanted,
        moving_seconds=fetching + high.get("stage_out", 0.0),
        fetching_seconds=0.0 if dispatch == "direct" else fetching,
    )


def _is_flexible(job: BrokeredJob) -> bool:
    return job.description.preferences is not None and job.description.preferences.flexible


def _duration(job: BrokeredJob) -> float:
    """Return the seconds to reserve for a job: its wall time, or without one the CPU time of each processor."""
    said = job.description
    seconds = said.wall_time or said.cpu_time / max(1, said.processors)
    return min(max(1.0, float(seconds)), LONGEST_SECONDS)


def _reserved(seconds: float, most: float) -> float:
    """Return the seconds to reserve for a program and its files that take `seconds`, with the pilot's own and in whole minutes.

    A pilot requests whole minutes that end within its reservation, and the program must have all its time in them. What is
    added to `seconds` never makes the reservation longer than `most`, the longest that the site grants.
    """
    pilot = ceil((seconds + STARTING_SECONDS) / 60) * 60.0
    return min(pilot + LATE_SECONDS, max(seconds, most), LONGEST_SECONDS)


def confirm(tx: Transaction, jobs: Sequence[tuple[BrokeredJob, Collection[str]]]) -> None:
    """Send the sites confirmations of temporary agreements; the messages are sent when the transaction commits.

    `jobs` are jobs, each with the ids of its agreements. Ids that were not asked for on the job's behalf are ignored.
    """
    for job, names in jobs:
        for name in names:
            if site := job.site_of(name):
                tx.send(OFFERS_TOPIC, site, Confirm(agreement_id=AgreementId(name), site=site))


def cancel(tx: Transaction, jobs: Sequence[tuple[BrokeredJob, Collection[str]]]) -> None:
    """Send the sites cancellations of agreements; the messages are sent when the transaction commits.

    `jobs` are jobs, each with the ids of its agreements. Ids that were not asked for on the job's behalf are ignored.
    """
    for job, names in jobs:
        for name in names:
            if site := job.site_of(name):
                tx.send(OFFERS_TOPIC, site, Cancel(agreement_id=AgreementId(name), site=site))
