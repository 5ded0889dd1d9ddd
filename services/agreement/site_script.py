"""Decisions by a site's own program, which may make reservations of any kind.

For each question it reads one JSON object and prints another. `reserve` has the offer, its window of starts and the name that
the reservation should get. The answer is a start, or the reason why there is none. `release` and `list` are about reservations
by these names:

    {"action": "reserve", "name": "wms-17", "cpus": 8, "seconds": 3600, "first_start": "...", "last_start": "...",
     "owner": "ann", "group": "physics", "vo": "lhcb", "job_id": 17, "site": "A", "ce": "main"}
    {"start_at": "2026-03-01T12:00:00Z"}    or    {"reason": "maintenance until Monday"}
    {"action": "release", "name": "wms-17"}    ->    {"released": true}
    {"action": "list"}    ->    {"reservations": [{"name": "wms-17", "start_at": "...", "ends_at": "...", "in_use": false}]}

A second `reserve` with the same name must get the same answer: the service may have crashed after the first.
"""

import os
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec

from services.agreement.config import SiteScript
from services.agreement.port import BatchReservation, Decision
from wms.agreement.calendar import Booking, OwnerBound
from wms.agreement.decision import Granted, ReservationRules
from wms.agreement.reasons import AgreementReason, Refusal
from wms.agreement.terms import AgreementTerms
from wms.bounds import GivenName, Moment, Reason
from wms.decoding import UNDECODABLE
from wms.dispatch.commands import Tools
from wms.errors import Unavailable, shown
from wms.ids import AgreementId

ANSWER_LIMIT: Final = 4 * 2**20
"""The most bytes that the program may print for one question. With more, the answer counts as invalid."""
PREFIX: Final = "wms-"

A = TypeVar("A", bound=msgspec.Struct)


class ReserveAnswer(msgspec.Struct, frozen=True):
    """The program's answer to `reserve`: the granted start; None if the offer is refused."""

    start_at: Moment | None = None
    reason: Reason = ""
    """Why the offer is refused; ignored if there is a start."""


class ReleaseAnswer(msgspec.Struct, frozen=True):
    """The program's answer to `release`: whether the reservation is gone."""

    released: bool


class ListedHolding(msgspec.Struct, frozen=True):
    """One reservation in the program's answer to `list`."""

    name: GivenName
    start_at: Moment
    ends_at: Moment
    in_use: bool = False


class ListAnswer(msgspec.Struct, frozen=True):
    """The program's answer to `list`: all reservations that it has made and not released."""

    reservations: Annotated[tuple[ListedHolding, ...], msgspec.Meta(max_length=100_000)]


class ScriptedElement:
    """The decision maker and resource helper of a computing element whose site has a program of its own for both.

    `cpus` is the most CPUs that one reservation can have.
    """

    at_once = 5

    def __init__(self, script: SiteScript, rules: ReservationRules, cpus: int) -> None:
        self._program = Path(script.program)
        self._rules = rules
        self.cpus = cpus
        path = os.environ.get("PATH", os.defpath)
        self._tools = Tools(
            {"PATH": path, "LC_ALL": "C.UTF-8"}, at_once=1, seconds=script.seconds, limit=ANSWER_LIMIT
        )

    def name_of(self, agreement_id: AgreementId) -> str:
        """Return the name of an agreement's reservation: `wms-` and the agreement's id."""
        return f"{PREFIX}{agreement_id}"

    async def look(
        self, _booked: Sequence[Booking], _owners: OwnerBound | None = None, /
    ) -> "ScriptedElement":
        """Return this object itself: the program keeps its own calendar, and is told the owner. So neither parameter is used."""
        return self

    async def begin(self, offers: Sequence[AgreementTerms], now: datetime) -> None:
        """Do nothing: the program is asked about one offer at a time."""

    async def decide(self, terms: AgreementTerms, now: datetime) -> Decision:
        """Ask the program to reserve, and return its grant or refusal. A start outside of the offer's window is refused.

        `now` is the database's time. Raise Unavailable if the program fails or prints no valid answer.
        """
        wish = self._rules.wish(terms, now)
        if wish.first > wish.last:
            return Refusal(AgreementReason.WINDOW_OVER, "no start is left in the window")
        question = {
            "action": "reserve",
            "name": self.name_of(terms.agreement_id),
            "cpus": terms.cpus,
            "seconds": wish.duration.total_seconds(),
            "first_start": wish.first,
            "last_start": wish.last,
            **{each: getattr(terms, each) for each in ("owner", "group", "vo", "job_id", "site", "ce")},
        }
        answer = await self._ask(question, ReserveAnswer)
        if answer.start_at is None:
            why = shown(answer.reason, 500) or "the site's script gives no reason"
            return Refusal(AgreementReason.REFUSED_BY_SITE, why)
        # It may be the answer to an earlier try, which was heard of only now.
        first = terms.first_start(now - timedelta(seconds=terms.expires_in_seconds))
        if not first <= answer.start_at <= wish.last:
            return Refusal(
                AgreementReason.REFUSED_BY_SITE,
                f"the site's script starts it at {answer.start_at}, outside the window",
            )
        return Granted(
            start_at=answer.start_at,
            ends_at=answer.start_at + wish.duration,
            reservation=self.name_of(terms.agreement_id),
        )

    async def holdings(self) -> list[BatchReservation]:
        """Return the reservations that the program lists and whose names begin with `wms-`.

        Raise Unavailable if the program fails or prints no valid answer.
        """
        answer = await self._ask({"action": "list"}, ListAnswer)
        return [
            BatchReservation(name=each.name, start_at=each.start_at, ends_at=each.ends_at, in_use=each.in_use)
            for each in answer.reservations
            if each.name.startswith(PREFIX)
        ]

    async def release(self, names: Collection[str]) -> set[str]:
        """Ask the program to release the named reservations, one after the other; return the names of those that are gone.

        Raise Unavailable if the program fails or prints no valid answer.
        """
        return {name for name in names if await self._is_released(name)}

    async def _is_released(self, name: str) -> bool:
        return (await self._ask({"action": "release", "name": name}, ReleaseAnswer)).released

    async def _ask(self, question: dict[str, Any], kind: type[A]) -> A:
        said = await self._tools.ask(str(self._program), text=msgspec.json.encode(question).decode())
        try:
            return msgspec.json.decode(said.printed, type=kind)
        except UNDECODABLE as error:
            raise Unavailable(f"{self._program} prints no answer: {error}") from None
