"""Templates: the bounds that a site sets for reservations on a computing element. Offers outside of them are denied at once."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from wms.agreement.reasons import AgreementReason, Refusal
from wms.agreement.terms import AgreementTerms, Cpus, Duration, Lifetime
from wms.bounds import Names


class AgreementTemplate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bounds that a site sets for each offer to reserve CPUs of one computing element."""

    max_cpus: Cpus = 1_000_000
    """The most CPUs of one reservation on the computing element."""
    min_seconds: Duration = 1.0
    max_seconds: Duration = 30 * 86_400.0
    """The longest reservation on the computing element, in seconds."""
    horizon_seconds: Annotated[float, msgspec.Meta(gt=0, le=366 * 86_400)] = 30 * 86_400.0
    """How far ahead a reservation may start, in seconds from now. An offer whose earliest start is later is denied."""
    max_lifetime_seconds: Lifetime = 3_600.0
    """The longest time in seconds for which an unconfirmed reservation is held, even if the offer asks for longer."""
    vos: Names = ()
    """The VOs that may reserve CPUs of the computing element; empty: all."""

    @property
    def horizon(self) -> timedelta:
        """How far ahead a reservation may start (`horizon_seconds`)."""
        return timedelta(seconds=self.horizon_seconds)

    def lifetime(self, terms: AgreementTerms) -> timedelta:
        """Return how long a granted reservation is held without a confirmation: as the offer asks, up to `max_lifetime_seconds`."""
        return timedelta(seconds=min(terms.expires_in_seconds, self.max_lifetime_seconds))

    def refusal(self, terms: AgreementTerms, cpus: int, now: datetime) -> Refusal | None:
        """Return the first reason why an offer is outside the bounds at the time `now`; None if it is within them.

        `cpus` is the number of CPUs of the element, which no offer may exceed either.
        """
        return next((Refusal(code, text) for code, text in self._faults(terms, cpus, now)), None)

    def _faults(
        self, terms: AgreementTerms, cpus: int, now: datetime
    ) -> Iterator[tuple[AgreementReason, str]]:
        if self.vos and terms.vo not in self.vos:
            yield AgreementReason.VO_REFUSED, f"no reservations are made for VO {terms.vo} here"
        if terms.cpus > (most := min(self.max_cpus, cpus)):
            yield (
                AgreementReason.TOO_MANY_CPUS,
                f"{terms.cpus} CPUs are asked for, and at most {most} are given",
            )
        yield from self._faulty_times(terms, now)

    def _faulty_times(self, terms: AgreementTerms, now: datetime) -> Iterator[tuple[AgreementReason, str]]:
        seconds, earliest, latest = terms.duration_seconds, terms.earliest_start, terms.latest_start
        if not self.min_seconds <= seconds <= self.max_seconds:
            text = (
                f"{seconds:g} s are asked for, and {self.min_seconds:g} to {self.max_seconds:g} s are given"
            )
            yield AgreementReason.TOO_LONG, text
        if earliest and latest and latest < earliest:
            yield (
                AgreementReason.WINDOW_REVERSED,
                f"the latest start {latest} is before the earliest {earliest}",
            )
        if latest and latest < now:
            yield AgreementReason.WINDOW_OVER, f"the latest start {latest} has passed"
        if earliest and earliest > now + self.horizon:
            text = f"the earliest start {earliest} is more than {self.horizon_seconds:g} s ahead"
            yield AgreementReason.BEYOND_HORIZON, text
