"""The durations of the phases of a run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Phases:
    """A record of the durations of a run's phases, in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure the duration of the enclosed phase."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - began, 2)
