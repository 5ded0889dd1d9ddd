"""Limits how many bytes each owner may submit."""

from collections.abc import Callable
from datetime import datetime, timedelta

from services.job_manager.config import SubmissionSettings
from wms.bus.budget import Budget
from wms.bus.delivery import Decoded
from wms.errors import Rejected
from wms.messages.commands import AddChunks, Command, Submit


class Rates:
    """Counts the bytes that each owner submits, and refuses submissions over the owner's rate.

    `monotonic` returns monotonic seconds. `now` returns the wall-clock time, which is only shown to people.
    """

    def __init__(
        self, settings: SubmissionSettings, monotonic: Callable[[], float], now: Callable[[], datetime]
    ) -> None:
        self._budget = Budget(settings.bytes_per_second, settings.burst_bytes)
        self._monotonic = monotonic
        self._now = now

    def admit(self, decoded: Decoded[Command]) -> Rejected | None:
        """Count a received submission against its owner's rate. Return None if it is accepted, or why it is refused.

        Other commands are always accepted.
        """
        message = decoded.delivery.message if decoded.delivery is not None else None
        if not isinstance(message, Submit | AddChunks):
            return None
        now = self._monotonic()
        wait = self._budget.seconds_until(decoded.owner, decoded.size, now)
        if wait > 0:
            return self._refusal(decoded, wait)
        self._budget.spend(decoded.owner, decoded.size, now)
        return None

    def _refusal(self, decoded: Decoded[Command], wait: float) -> Rejected:
        at = self._now() + timedelta(seconds=wait + 1)
        return Rejected(
            "TOO_FAST",
            f"{decoded.owner} has submitted {self._budget.burst:,.0f} bytes at once,"
            f" and may submit {self._budget.rate:,.0f} more a second",
            f"submit it again in {wait + 1:.0f} s, at {at:%H:%M:%S} UTC",
        )
