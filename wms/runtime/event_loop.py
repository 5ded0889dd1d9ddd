"""The event loop of a service, which measures how long one callback keeps all others waiting.

A hold is told by the processor time of the loop's thread: on a busy machine a callback may take long without a fault of its own. The processor
time is read only after 5 ms, since that is a system call. It may thus count up to 5 ms of the callbacks before.
"""

import asyncio
import gc
import threading
from collections import deque
from collections.abc import Callable
from contextvars import Context
from time import perf_counter, thread_time
from typing import Any, Final, TypeVarTuple, Unpack

import structlog
import uvloop

from wms.runtime import clock
from wms.runtime.guarded_loop import GuardedLoop
from wms.runtime.service_health import HOLD_LIMIT_MS, LoopHealth, LoopHold

log = structlog.get_logger()

READ_SECONDS: Final = 0.005
"""Seconds after which the processor time is read again."""
LOG_SECONDS: Final = 1.0
"""Seconds between two lines of the log on long holds."""
GARBAGE: Final = "garbage collection"
"""The name of holds that were mostly Python's garbage collection, which begins in whatever callback makes an object."""
IO: Final = "connections and timers"
"""The name of holds by callbacks of connections and timers, which run between those of tasks."""

Ts = TypeVarTuple("Ts")
_call_soon = uvloop.Loop.call_soon


class MeasuredLoop(GuardedLoop):
    """An event loop of uvloop that keeps the longest holds of the last minute and since the start.

    Each step of a task passes `call_soon`. The measure costs 0.35 us a step.
    """

    def __init__(self) -> None:
        super().__init__()
        self.holds = LoopHolds()
        self._timed = self.holds.timed
        gc.callbacks.append(self.holds.collect)

    def close(self) -> None:
        """Close the loop, and measure no more."""
        if self.holds.collect in gc.callbacks:
            gc.callbacks.remove(self.holds.collect)
        super().close()

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Schedule a callback, which is measured when it runs."""
        return _call_soon(self, self._timed, callback, args, context=context)


def measured(loop: asyncio.AbstractEventLoop) -> Callable[[], LoopHealth]:
    """Forget all holds, as a service has started now. Return the function that tells the longest since then; none of another kind of loop."""
    if not isinstance(loop, MeasuredLoop):
        return LoopHealth
    loop.holds.forget()
    return loop.holds.health


class LoopHolds:
    """Measures the callbacks of one thread, and keeps the longest holds."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._read_at = perf_counter()
        self._processor = thread_time()
        self._collected = 0.0
        """Processor time of garbage collections since it was last read, in seconds."""
        self._collecting = 0.0
        self._longest: LoopHold | None = None
        self._recent = deque[LoopHold]()
        """Holds of the last minute, each shorter than those before it."""
        self._logged_at = -LOG_SECONDS

    def timed(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        """Call back, and note the hold if it may be a long one."""
        began = perf_counter()
        callback(*args)
        now = perf_counter()
        if now - self._read_at > READ_SECONDS:
            self._read(callback, now - began, now)

    def forget(self) -> None:
        """Forget all holds so far."""
        self._longest = None
        self._recent.clear()

    def health(self) -> LoopHealth:
        """Return the longest holds, for the heartbeat."""
        self._expire(clock.timestamp())
        return LoopHealth(last_minute=self._recent[0] if self._recent else None, since_start=self._longest)

    def _read(self, callback: Callable[..., object], took: float, now: float) -> None:
        processor = thread_time()
        used, self._processor = processor - self._processor, processor
        collected, self._collected = self._collected, 0.0
        self._read_at = now
        # A callback uses no more processor time than it takes. What is beyond was used before it.
        if used > READ_SECONDS:
            own = min(used, took)
            name, seconds = (_name(callback), took) if own >= used - own else (IO, used - own)
            self._note(GARBAGE if collected > used / 2 else name, max(own, used - own), seconds, now)

    def collect(self, phase: str, _: dict[str, int]) -> None:
        """Time a garbage collection, as one of Python's `gc.callbacks`."""
        if threading.get_ident() == self._thread:
            if phase == "start":
                self._collecting = thread_time()
            else:
                self._collected += thread_time() - self._collecting

    def _note(self, name: str, processor: float, seconds: float, now: float) -> None:
        at = clock.timestamp()
        hold = LoopHold(
            name=name, processor_ms=round(processor * 1e3, 1), ms=round(seconds * 1e3, 1), at=round(at, 3)
        )
        while self._recent and self._recent[-1].processor_ms <= hold.processor_ms:
            self._recent.pop()
        self._recent.append(hold)
        self._expire(at)
        if self._longest is None or self._longest.processor_ms < hold.processor_ms:
            self._longest = hold
        if hold.processor_ms >= HOLD_LIMIT_MS and now - self._logged_at > LOG_SECONDS:
            self._logged_at = now
            log.warning("the event loop was held", by=name, processor_ms=hold.processor_ms, ms=hold.ms)

    def _expire(self, at: float) -> None:
        while self._recent and self._recent[0].at < at - 60.0:
            self._recent.popleft()


def _name(callback: Callable[..., object]) -> str:
    """Return the name of the task whose step a callback is, or the callback's own; tasks without a name are told by their coroutine."""
    owner = getattr(callback, "__self__", None)
    if not isinstance(owner, asyncio.Task):
        return getattr(callback, "__qualname__", type(callback).__name__)
    name = owner.get_name()
    return getattr(owner.get_coro(), "__qualname__", name) if name.startswith("Task-") else name
