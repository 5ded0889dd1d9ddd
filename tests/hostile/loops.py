"""What no attack may do to a service: keep its event loop for long, or have it started again."""

import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator
from statistics import median

from tests.hostile.target import Target
from wms.cli import health
from wms.cli.health import ProcessHealth
from wms.cli.options import CommonOptions

LIMIT_MS = 100.0
"""The most processor time of one callback, on this machine while nothing else slows its processors down."""


class Pace:
    """How much processor time the same work takes from moment to moment: others share the processors' caches and units."""

    best = float("inf")
    """The least seconds that it ever took."""

    def __init__(self) -> None:
        self._taken: list[tuple[float, float]] = []

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Measure it every 0.2 s in this context."""
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def at(self, moment: float) -> float:
        """Return how many times the least processor time was taken around a moment; from 1 to 2."""
        near = sorted(self._taken, key=lambda each: abs(each[0] - moment))[:5]
        return min(2.0, max(1.0, median(took for _, took in near) / Pace.best))

    def _watch(self, over: threading.Event) -> None:
        while not over.wait(0.2) or not self._taken:
            began = time.thread_time()
            for _ in range(500_000):
                pass
            took = time.thread_time() - began
            Pace.best = min(Pace.best, took)
            self._taken.append((time.time(), took))


@contextlib.asynccontextmanager
async def kept_free(target: Target) -> AsyncIterator[None]:
    """Check every service of the system once the body is over, as `wms status` tells of it.

    AssertionError: an event loop was held for too long, or the supervisor has started a process again that no test froze.
    """
    began, starts, pace = time.time(), _starts(target), Pace()
    with pace.watched():
        yield
    found = await health.look(CommonOptions(data=target.root))
    holds = [told for part in found.parts if (told := _held(part, began, pace))]
    assert not holds, holds
    again = {name for name, count in _starts(target).items() if count != starts.get(name, count)}
    assert again <= target.frozen, f"started again: {again}"


def _held(part: ProcessHealth, began: float, pace: Pace) -> str:
    for hold in (part.loop.last_minute, part.loop.since_start):
        if hold is not None and hold.at >= began and hold.processor_ms >= LIMIT_MS * pace.at(hold.at):
            return f"{part.name}: {hold}, at {pace.at(hold.at):.1f} of the pace"
    return ""


def _starts(target: Target) -> dict[str, int]:
    return {name: child.starts for name, child in target.system.state().children.items()}
