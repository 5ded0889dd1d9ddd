"""Finds hung processes: they run, but their sign of life, such as a heartbeat, has not changed for too long."""

from collections.abc import Hashable, Mapping

HUNG_AFTER_SECONDS = 15.0
BLIND_SECONDS = 5.0
"""The longest pause between two checks, in seconds. After a longer one earlier signs are forgotten, since the machine may have been suspended."""


class HangDetector:
    """Finds processes whose sign of life is the same in all checks for `hung_after` seconds.

    A sign is any value that changes while the process works. The detector reads no clock: each check gets the time.
    """

    def __init__(self, hung_after: float = HUNG_AFTER_SECONDS) -> None:
        self._hung_after = hung_after
        self._signs: dict[str, tuple[Hashable, float]] = {}
        self._looked_at: float | None = None

    def look(self, signs: Mapping[str, Hashable], now: float) -> list[str]:
        """Compare the signs of life, by process name, with those of earlier checks. Return the names of processes that hang.

        A process is named once, and then only after another `hung_after` seconds. `now` is the time of the check, in seconds of a monotonic
        clock.
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
