"""The phases of a run, and how long each took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Phases:
    """What a run did one after another, and the seconds that each took."""

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
