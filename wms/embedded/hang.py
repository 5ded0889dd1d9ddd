"""Detection of processes that hang: they run, but have given no sign of life for too long."""

from collections.abc import Hashable, Mapping

HUNG_AFTER_SECONDS = 15.0
BLIND_SECONDS = 5.0
"""The longest pause in seconds between two checks. After a longer one all signs count as new, since the machine may have slept."""


class HangDetector:
    """A comparison of each process's last sign of life with its signs at earlier checks.

    A sign is any value that changes while the process works. `now` is in monotonic seconds; no clock is read.
    """

    def __init__(self, hung_after: float = HUNG_AFTER_SECONDS) -> None:
        self._hung_after = hung_after
        self._signs: dict[str, tuple[Hashable, float]] = {}
        self._looked_at: float | None = None

    def look(self, signs: Mapping[str, Hashable], now: float) -> list[str]:
        """Record the present signs. Return the names whose sign has not changed for too long, each once."""
        if self._looked_at is None or now - self._looked_at > BLIND_SECONDS:
            self._signs = {}
        self._looked_at = now
        before = self._signs
        self._signs = {
            name: before[name] if name in before and before[name][0] == sign else (sign, now)
            for name, sign in signs.items()
        }
        hung = [name for name, (_, since) in self._signs.items() if now - since > self._hung_after]
        for name in hung:
            del self._signs[name]
        return hung
