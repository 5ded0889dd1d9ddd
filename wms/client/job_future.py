"""The futures of calls that are jobs, and the results of many of them in order."""

import concurrent.futures
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class JobFuture(concurrent.futures.Future[T]):
    """The future of a call that is a job. It can be cancelled while it runs, too: its job is then killed."""

    def __init__(self) -> None:
        super().__init__()
        self.job_id: int | None = None
        """The id of the job. None until it is submitted."""
        self.started = False
        """Whether the job was seen to have started."""

    def running(self) -> bool:
        """Return whether the job has started and its result is not here yet."""
        return self.started and not self.done()


class CallWindow(Generic[T]):
    """The calls of many rows of arguments, of which at most `ahead` are unfinished at a time.

    Each call takes a place of `room`, which `submit` gives back if it fails. While others take all places, fewer are ahead.
    `timeout` is for all results together, in seconds; None: no bound.
    """

    def __init__(
        self,
        submit: Callable[[tuple[Any, ...]], JobFuture[T]],
        rows: Iterator[tuple[Any, ...]],
        room: threading.Semaphore,
        *,
        ahead: int,
        timeout: float | None,
    ) -> None:
        self._submit = submit
        self._rows = rows
        self._room = room
        self._ahead = ahead
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._futures = deque[JobFuture[T]]()
        self._more = True
        self._fill()

    def results(self) -> Iterator[T]:
        """Yield the results in order, and submit further calls. Those whose results are not yielded are cancelled.

        Raise TimeoutError if a result was not there in time.
        """
        try:
            while self._futures or self._more:
                if self._futures:
                    result = self._futures[0].result(self._left())
                    self._futures.popleft()
                    self._fill()
                    yield result
                else:
                    self._fill()
        finally:
            for future in self._futures:
                future.cancel()

    def _fill(self) -> None:
        while self._more and len(self._futures) < self._ahead and self._has_room():
            row = None
            try:
                row = next(self._rows, None)
            finally:
                self._more = row is not None
                if row is None:
                    self._room.release()
            if row is not None:
                self._futures.append(self._submit(row))

    def _has_room(self) -> bool:
        if self._futures:
            return self._room.acquire(blocking=False)
        if not self._room.acquire(timeout=self._left()):
            raise TimeoutError
        return True

    def _left(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())
