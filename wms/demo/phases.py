"""The phases of a run and their durations."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Phases:
    """Durations of the phases of a run, in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure a phase."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - began, 2)
