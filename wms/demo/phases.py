"""Measures how long the phases of a run take, such as submitting and merging."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Phases:
    """Measures how long each phase of a run takes, by its name, in seconds of wall-clock time."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Measure the time of a `with` block, also if it raises, and store it under `name`."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - began, 2)
