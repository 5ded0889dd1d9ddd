"""Finds processes that hang: they run, but show no sign of life for too long."""

from collections.abc import Hashable, Mapping

HUNG_AFTER_SECONDS = 15.0
BLIND_SECONDS = 5.0
"""How many seconds may pass between two checks. After a longer pause all signs count as new, since the machine may have slept."""


class HangDetector:
    """Compares each process's sign of life with those of earlier checks. It hangs if the sign is the same for `hung_after` seconds.

    A sign is any value that changes while the process works. No clock is read.
    """

    def __init__(self, hung_after: float = HUNG_AFTER_SECONDS) -> None:
        self._hung_after = hung_after
        self._signs: dict[str, tuple[Hashable, float]] = {}
        self._looked_at: float | None = None

    def look(self, signs: Mapping[str, Hashable], now: float) -> list[str]:
        """Store the present signs, by name of the process. Return the names of those that hang now, each once.

        `now` is in monotonic seconds.
        """
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
