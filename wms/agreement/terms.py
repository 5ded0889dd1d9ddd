"""The terms of an agreement: how many CPUs are to be reserved at which computing element, for whom and when."""

from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from wms.bounds import GivenName, Moment, Name
from wms.ids import AgreementId, JobId

Cpus = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Duration = Annotated[float, msgspec.Meta(ge=1, le=366 * 86_400)]
"""The length of a reservation in seconds, at most a year."""
Lifetime = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
"""Seconds for which an offer waits for a decision, or a reservation for its confirmation. After that it expires. At most a day."""


class AgreementTerms(msgspec.Struct, frozen=True, kw_only=True):
    """An offer of the resource broker to a site: to reserve CPUs of one computing element for a job.

    The reservation lasts `duration_seconds` and starts between `earliest_start` and `latest_start`.
    """

    agreement_id: AgreementId
    """The id, chosen by the resource broker. A second offer with the same id has no effect."""
    job_id: JobId
    vo: Name
    owner: GivenName
    group: Name
    site: GivenName
    ce: GivenName
    cpus: Cpus = 1
    duration_seconds: Duration
    earliest_start: Moment | None = None
    """The earliest allowed start; None: now, by the database's clock."""
    latest_start: Moment | None = None
    """The latest allowed start; None: as far ahead as the site makes reservations."""
    flexible: bool = False
    """Whether the site may move the start within its window (`earliest_start` to `latest_start`) until the agreement is confirmed."""
    expires_in_seconds: Lifetime = 60.0
    """Seconds after its grant at which the reservation expires unless it is confirmed.

    An offer on which the site has not decided so many seconds after it was stored is denied.
    """

    @property
    def duration(self) -> timedelta:
        """The length of the reservation (`duration_seconds`) in whole seconds, rounded up."""
        return timedelta(seconds=-(-self.duration_seconds // 1))

    def first_start(self, now: datetime) -> datetime:
        """Return the earliest possible start in whole seconds, rounded up: `earliest_start`, but not before `now`."""
        begin = max(now, self.earliest_start or now)
        return begin if begin.microsecond == 0 else begin.replace(microsecond=0) + timedelta(seconds=1)

    def last_start(self, now: datetime, horizon: timedelta) -> datetime:
        """Return the latest possible start: `latest_start`, but not after `now` plus the site's `horizon`."""
        return min(now + horizon, self.latest_start or now + horizon)
