"""Leases: which pilot holds a job, under which epoch, and until when.

A pilot holds a job in two phases. An *offer* is held for it briefly. Only when its acceptance is committed does the pilot have the lease. Server and
agent compute the end separately, each with a clock that it can trust. The server uses the database's clock, from the moment it grants. The agent uses
its node's monotonic clock, from the earlier moment it *sent* the request that was granted. The agent stops its payload a margin before its own
computed end. So the payload has stopped before the server may give the job away. This holds however slow the messages are, and for clocks whose rates
differ by up to `DRIFT`.
"""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from wms.ids import Epoch, JobId, PilotId

DRIFT: Final = 0.02
"""The most by which a node's clock may run faster or slower than the database's, as a fraction: one second in fifty."""


class Lease(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The hold of one pilot on one job: an offer, or an accepted lease, until a time."""

    job_id: JobId
    epoch: Epoch
    pilot_id: PilotId
    phase: Literal["offered", "accepted"]
    expires_at: datetime
    """The end of the lease by the database's clock."""
    counted: tuple[int, ...] = ()
    """The ids of the limit counters that count this job as running."""
    granted_at: datetime | None = None
    """When the job was offered to the pilot, by the database's clock. None where that was not read."""


class LeaseDurations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The durations of offers and leases, in seconds."""

    offer_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 30.0
    lease_seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 120.0


def renewal_seconds(lease_seconds: float) -> float:
    """Return the seconds after which a lease is renewed: a third of its length, so that two renewals may get lost."""
    return lease_seconds / 3


def holds(lease: Lease | None, pilot_id: PilotId, epoch: Epoch, now: datetime) -> bool:
    """Return whether the pilot holds the job under this epoch at `now`, a time by the database's clock."""
    return (
        lease is not None and lease.pilot_id == pilot_id and lease.epoch == epoch and lease.expires_at > now
    )


def stop_at(sent_at: float, lease_seconds: float, grace_seconds: float) -> float:
    """Return the time, by the clock of `sent_at`, at which the agent starts to stop a payload whose lease was not renewed.

    `grace_seconds` is the time that stopping may take; the drift of the clocks is subtracted as well.
    """
    return sent_at + lease_seconds * (1 - DRIFT) - grace_seconds


STEP_SECONDS: Final = 3.0
"""The most seconds by which two clocks may differ over the same period. If they differ by more, one of them was set."""


class ClockStepDetector:
    """Detects that the database's clock, by which leases end, was set. It is compared with a monotonic clock."""

    def __init__(self) -> None:
        self._last: tuple[datetime, float] | None = None

    def since(self, now: datetime, monotonic: float) -> float:
        """Return by how many seconds the database's clock was set forward since the last call; negative if it was set back, 0.0 if it was not set.

        `now` is the time by that clock, `monotonic` the monotonic seconds of this machine.
        """
        last, self._last = self._last, (now, monotonic)
        if last is None:
            return 0.0
        step = (now - last[0]).total_seconds() - (monotonic - last[1])
        return step if abs(step) > STEP_SECONDS else 0.0
