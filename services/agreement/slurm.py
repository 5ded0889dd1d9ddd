"""Reservations of a Slurm cluster, by `scontrol`: made at the earliest start that Slurm accepts, found again by their names.

Slurm itself decides whether a reservation fits. Its list of jobs and reservations shows which starts are worth a try: the first
at which so many CPUs could be free, and then every end of a job or reservation. A reservation is on one node, as pilots are.
Slurm itself drops a reservation that is idle for longer than the grace time, even while this service is down.
"""

import asyncio
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from msgspec.structs import replace

from services.agreement.config import SlurmReservations
from services.agreement.port import BatchReservation, Decision
from services.agreement.slurm_listing import (
    JOB_FORMAT,
    ListedReservation,
    RunningJob,
    in_use,
    jobs,
    nodes,
    reservations,
    written,
)
from wms.agreement.calendar import Booking, CpuRequest, OwnerBound, SlotCalendar
from wms.agreement.decision import Granted, ReservationRules, no_room
from wms.agreement.reasons import AgreementReason, Refusal
from wms.agreement.terms import AgreementTerms
from wms.dispatch.commands import ToolOutput, Tools
from wms.errors import Unavailable
from wms.ids import AgreementId

log = structlog.get_logger()

TRIES: Final = 25
"""The most starts at which Slurm is asked to make the reservation of one offer. After that the offer is refused."""
TOOL_SECONDS: Final = 15.0
LATER_SECONDS: Final = 120.0
"""Seconds beyond the grace time after which Slurm itself drops an unused reservation. So this service releases it first.

The service also stores the reason.
"""
STEP_SECONDS: Final = 60.0
"""Seconds from a start that Slurm refused to the next one tried, if no job or reservation is known to end."""
BUSY: Final = ("nodes are busy", "Requested node configuration is not available")
CREATED: Final = re.compile(r"Reservation created: (\S+)")
DUPLICATE: Final = "Duplicate reservation name"
REFUSED: Final = "Error creating the reservation"


class SlurmElement:
    """The decision maker and resource helper of one partition of a Slurm cluster."""

    at_once = 50

    def __init__(
        self, settings: SlurmReservations, rules: ReservationRules, grace_seconds: float, path: str
    ) -> None:
        """Build the decision maker and resource helper; `path` is the PATH on which Slurm's tools are searched.

        Slurm drops reservations that are unused `grace_seconds` and `LATER_SECONDS` after their start.
        """
        self.settings = settings
        self.rules = rules
        idle = int(grace_seconds + LATER_SECONDS)
        self._purge = f"PURGE_COMP={idle // 3600:02}:{idle // 60 % 60:02}:{idle % 60:02}"
        configured = {"SLURM_CONF": settings.configuration} if settings.configuration else {}
        own = {"PATH": f"{settings.directory}:{path}" if settings.directory else path}
        # In UTC, whatever the zone of this machine or a change to summer time.
        self._tools = Tools(own | {"LC_ALL": "C", "TZ": "UTC"} | configured, seconds=TOOL_SECONDS)

    async def look(self, booked: Sequence[Booking], owners: OwnerBound | None = None, /) -> "SlurmOutlook":
        """Return the state of the partition as Slurm lists it: nodes, reservations and running jobs.

        `booked` only says whose the listed reservations are, as `owners` bounds what one owner may hold. Raise Unavailable if
        Slurm does not answer.
        """
        sizes, listed, running = await asyncio.gather(self._sizes(), self._listed(), self._running())
        here = [each for each in listed if each.partition == self.settings.partition]
        there = {each.name: each for each in self._ours(here, frozenset())}
        whose = {self.name_of(each.agreement_id): each.owner for each in booked}
        calendar = SlotCalendar(sum(sizes), [*_reserved(here, whose), *_taken(running)], owners)
        return SlurmOutlook(self, max(sizes, default=0), there, calendar)

    async def create(self, name: str, wish: CpuRequest, start: datetime) -> ToolOutput:
        """Ask Slurm to reserve the CPUs of `wish` for its duration from `start` on, under a name.

        Return what `scontrol` printed; it is not checked whether the reservation was made.
        """
        return await self._tools.run("scontrol", *self._creation(name, wish, start))

    async def create_all(self, wanted: Mapping[str, tuple[CpuRequest, datetime]]) -> set[str]:
        """Ask Slurm in one call for many reservations, given by name, each with its start. Return the names of those made.

        Raise Unavailable if the call does not end in time; Slurm may have made some of the reservations.
        """
        said = await self._order(self._creation(name, *each) for name, each in wanted.items())
        return {name for name in CREATED.findall(said.out) if name in wanted}

    def _creation(self, name: str, wish: CpuRequest, start: datetime) -> tuple[str, ...]:
        return (
            "create", "reservation", f"ReservationName={name}", f"StartTime={written(start)}",
            f"EndTime={written(start + wish.duration)}", "NodeCnt=1", f"CoreCnt={wish.cpus}",
            f"PartitionName={self.settings.partition}", f"Users={','.join(self.settings.users)}", f"Flags={self._purge}",
        )  # fmt: skip

    async def _order(self, orders: Iterable[Sequence[str]]) -> ToolOutput:
        """Run `scontrol` once with many commands on its standard input, one a line: most of a call's time is the start of the tool."""
        return await self._tools.run("scontrol", text="".join(f"{' '.join(words)}\n" for words in orders))

    def name_of(self, agreement_id: AgreementId) -> str:
        """Return the name of an agreement's reservation: the configured prefix, a hyphen and the agreement's id."""
        return f"{self.settings.prefix}-{agreement_id}"

    async def holdings(self) -> list[BatchReservation]:
        """Return the reservations in the partition whose names begin with this system's prefix, whoever made them.

        Raise Unavailable if Slurm does not answer.
        """
        used = in_use(await self._running())
        return self._ours(await self._listed(), used)

    async def release(self, names: Collection[str]) -> set[str]:
        """Delete the reservations with these names; return the names that Slurm does not list afterwards. One in which a job runs stays.

        Raise Unavailable if Slurm does not answer.
        """
        said = await self._order(("delete", f"reservation={name}") for name in names)
        left = {each.name for each in await self._listed()}
        if stay := left.intersection(names):
            log.info("reservations stay for now", names=sorted(stay), error=said.complaint)
        return set(names) - left

    def _ours(self, listed: Iterable[ListedReservation], used: frozenset[str]) -> list[BatchReservation]:
        begin = f"{self.settings.prefix}-"
        return [
            BatchReservation(
                name=each.name, start_at=each.start_at, ends_at=each.ends_at, in_use=each.name in used
            )
            for each in listed
            if each.name.startswith(begin) and each.partition == self.settings.partition
        ]

    async def _listed(self) -> list[ListedReservation]:
        said = await self._tools.run("scontrol", "--oneliner", "show", "reservation")
        if said.code and "No reservations" not in said.out + said.err:
            raise Unavailable(f"scontrol: {said.complaint}")
        return list(reservations(said.out))

    async def _sizes(self) -> list[int]:
        said = await self._tools.ask("sinfo", "-h", "-N", "-p", self.settings.partition, "-o", "%c")
        return nodes(said.out)

    async def _running(self) -> list[RunningJob]:
        partition = self.settings.partition
        said = await self._tools.ask("squeue", "-h", "-t", "R,S", "-p", partition, "-o", JOB_FORMAT)
        return list(jobs(said.out))


class SlurmOutlook:
    """The free CPUs of a Slurm partition in one round of decisions; reservations made in the round count for later offers."""

    def __init__(
        self, element: SlurmElement, cpus: int, there: Mapping[str, BatchReservation], calendar: SlotCalendar
    ) -> None:
        """Build the state from what Slurm lists.

        `cpus` are the CPUs of the largest node. `there` are this system's reservations by name. `calendar` has the CPUs of all
        reservations and running jobs.
        """
        self.cpus = cpus
        self._element = element
        self._there = dict(there)
        self._calendar = calendar

    async def begin(self, offers: Sequence[AgreementTerms], now: datetime) -> None:
        """Ask Slurm in one call for a reservation for each offer, at the earliest start that the calendar shows.

        Raise Unavailable if the call does not end in time, so that it is unknown which of them Slurm made.
        """
        wanted = {name: each for offer in offers for name, each in self._wanted(offer, now)}
        if not wanted:
            return
        made = await self._element.create_all(wanted)
        for name, (wish, start) in wanted.items():
            booking = wish.at(start, AgreementId(name))
            if name in made:
                self._there[name] = BatchReservation(name=name, start_at=start, ends_at=booking.ends_at)
            else:
                self._calendar.drop(booking.agreement_id)

    def _wanted(
        self, terms: AgreementTerms, now: datetime
    ) -> Iterable[tuple[str, tuple[CpuRequest, datetime]]]:
        """Book the earliest start for an offer in the calendar, and yield its reservation: the name, the wanted CPUs and the start.

        Nothing is yielded if the reservation exists already, or if no start is left.
        """
        name, wish = self._element.name_of(terms.agreement_id), self._element.rules.wish(terms, now)
        if name not in self._there and (start := self._calendar.earliest(wish)) is not None:
            self._calendar.book(wish.at(start, AgreementId(name)))
            yield name, (wish, start)

    async def decide(self, terms: AgreementTerms, now: datetime) -> Decision:
        """Ask Slurm for the offer's reservation at up to `TRIES` starts, the earliest first. Return the grant or the refusal.

        Raise Unavailable if it is unknown whether Slurm made the reservation.
        """
        name = self._element.name_of(terms.agreement_id)
        if there := self._there.get(name):
            return Granted(start_at=there.start_at, ends_at=there.ends_at, reservation=name)
        wish = self._element.rules.wish(terms, now)
        for _ in range(TRIES):
            start = self._calendar.earliest(wish)
            if start is None:
                break
            if (outcome := await self._create(name, wish, start)) is not None:
                return outcome
            wish = replace(wish, first=self._next_end(start))
        return no_room(self._element.rules.wish(terms, now), self._calendar)

    async def _create(self, name: str, wish: CpuRequest, start: datetime) -> Granted | Refusal | None:
        """Ask Slurm for a reservation at this start; return the grant or refusal, or None if the CPUs are not free then.

        Raise Unavailable if it is unknown whether Slurm made the reservation.
        """
        said = await self._element.create(name, wish, start)
        if said.code == 0:
            booking = wish.at(start, AgreementId(name))
            self._calendar.book(booking)
            return Granted(start_at=start, ends_at=booking.ends_at, reservation=name)
        if any(each in said.err for each in BUSY):
            return None
        if DUPLICATE in said.err or REFUSED not in said.err:
            # It may have been made all the same; the next round finds it by its name.
            raise Unavailable(f"scontrol: {said.complaint}")
        return Refusal(AgreementReason.REFUSED_BY_SITE, f"Slurm refused it: {said.complaint}"[:900])

    def _next_end(self, after: datetime) -> datetime:
        """Return the first end of a job or reservation after a time; `STEP_SECONDS` after the time if none is known."""
        ends = [each.ends_at for each in self._calendar if each.ends_at > after]
        return min(ends, default=after + timedelta(seconds=STEP_SECONDS))


def _reserved(listed: Iterable[ListedReservation], whose: Mapping[str, str]) -> Iterable[Booking]:
    """Return the listed reservations as bookings under their names; `whose` has the owners of this system's own, by name."""
    return (
        Booking(
            agreement_id=AgreementId(each.name),
            cpus=each.cpus,
            start_at=each.start_at,
            ends_at=each.ends_at,
            owner=whose.get(each.name, ""),
        )
        for each in listed
        if each.ends_at > each.start_at
    )


def _taken(running: Iterable[RunningJob]) -> Iterable[Booking]:
    """Return the CPUs and times that running jobs take, by their time limits.

    Jobs in reservations are left out, since their CPUs are counted with the reservation.
    """
    for number, job in enumerate(running):
        if job.began_at and job.ends_at and job.ends_at >= job.began_at and not job.reservation:
            # For Slurm a job takes its cores in the second of its end, too.
            end = job.ends_at + timedelta(seconds=1)
            yield Booking(
                agreement_id=AgreementId(f"job {number}"), cpus=job.cpus, start_at=job.began_at, ends_at=end
            )
