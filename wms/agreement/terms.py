"""The terms of an agreement: what is to be reserved, for whom, and when."""

from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from wms.bounds import GivenName, Moment, Name
from wms.ids import AgreementId, JobId

Cpus = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Duration = Annotated[float, msgspec.Meta(ge=1, le=366 * 86_400)]
"""The length of a reservation in seconds."""
Lifetime = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
"""The seconds for which an offer or an unconfirmed reservation lives."""


class AgreementTerms(msgspec.Struct, frozen=True, kw_only=True):
    """An offer of the broker to a site: CPUs of one computing element for a job, within a window of starts."""

    agreement_id: AgreementId
    """Chosen by the broker; a second offer with the same id takes no effect."""
    job_id: JobId
    vo: Name
    owner: GivenName
    group: Name
    site: GivenName
    ce: GivenName
    cpus: Cpus = 1
    duration_seconds: Duration
    earliest_start: Moment | None = None
    """None: now, by the database's clock."""
    latest_start: Moment | None = None
    """The last allowed start; None: as late as the site plans ahead."""
    flexible: bool = False
    """Whether the site may move the start within the window until the agreement is confirmed."""
    expires_in_seconds: Lifetime = 60.0
    """Seconds from the decision until an unconfirmed reservation expires; also from the offer until it is denied undecided."""

    @property
    def duration(self) -> timedelta:
        """The duration in whole seconds, rounded up."""
        return timedelta(seconds=-(-self.duration_seconds // 1))

    def first_start(self, now: datetime) -> datetime:
        """Return the first possible start, in whole seconds: the window's begin, but not before `now`."""
        begin = max(now, self.earliest_start or now)
        return begin if begin.microsecond == 0 else begin.replace(microsecond=0) + timedelta(seconds=1)

    def last_start(self, now: datetime, horizon: timedelta) -> datetime:
        """Return the last possible start: the window's end, but not after `now` plus the horizon of the site."""
        return min(now + horizon, self.latest_start or now + horizon)
