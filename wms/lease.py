"""Leases: who holds a job, under which epoch, until when.

A pilot owns a job in two phases. An *offer* is held for it briefly; only when its acceptance is committed is the
lease its own. Server and agent reckon the end apart, each with a clock that it can trust: the server by the database's,
from when it grants; the agent by its node's monotonic clock, from when it *sent* the request that was granted, which is
earlier. The agent stops its payload a margin before its own reckoning ends, so that it has stopped before the server may
give the job away, however slow the messages, and for clocks that drift up to `DRIFT` apart.
"""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from wms.ids import Epoch, JobId, PilotId

DRIFT: Final = 0.02
"""How much faster or slower than the database's clock a node's may run: one second in fifty."""


class Lease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One pilot's hold on one job."""

    job_id: JobId
    epoch: Epoch
    pilot_id: PilotId
    phase: Literal["offered", "accepted"]
    expires_at: datetime
    """By the database's clock."""
    counted: tuple[int, ...] = ()
    """The counters of limits that it is counted by."""


class LeaseTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long leases are, in seconds."""

    offer_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 30.0
    lease_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 120.0


def renewal_seconds(lease_seconds: float) -> float:
    """Return after how long a lease is renewed: a third of it, so that two renewals may get lost."""
    return lease_seconds / 3


def holds(lease: Lease | None, pilot_id: PilotId, epoch: Epoch, now: datetime) -> bool:
    """Return whether the pilot holds the job under this epoch at this database time."""
    return (
        lease is not None and lease.pilot_id == pilot_id and lease.epoch == epoch and lease.expires_at > now
    )


def stop_at(sent_at: float, lease_seconds: float, grace_seconds: float) -> float:
    """Return when, by the clock of `sent_at`, the agent starts to stop a payload whose lease was not renewed.

    `grace_seconds` is what stopping may take; the drift of the clocks is taken off as well.
    """
    return sent_at + lease_seconds * (1 - DRIFT) - grace_seconds


STEP_SECONDS: Final = 3.0
"""What two clocks that count the same time may disagree by before one of them is taken to have been set."""


class Steps:
    """Watches the database's clock, by which leases end, beside a clock that nobody sets, for whether it was set."""

    def __init__(self) -> None:
        self._last: tuple[datetime, float] | None = None

    def since(self, now: datetime, monotonic: float) -> float:
        """Return by how many seconds the database's clock was set on (negative: back) since the last look; 0.0 if it was not."""
        last, self._last = self._last, (now, monotonic)
        if last is None:
            return 0.0
        step = (now - last[0]).total_seconds() - (monotonic - last[1])
        return step if abs(step) > STEP_SECONDS else 0.0
