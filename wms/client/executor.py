"""A `concurrent.futures.Executor` whose functions run as jobs at the sites.

    from wms.client.executor import Executor

    with Executor() as executor:
        print(list(executor.map(pow, [2, 3], [10, 10])))

Each job should take some seconds at least; `map` with a `chunksize` makes many calls in one job. Functions and arguments are
pickled by `cloudpickle` if it is installed, else by the standard library. The standard library pickles only functions of modules
that are installed at the site or are sent with `files`. The result of a job is unpickled on this machine, so use only sites that
you trust to run programs on it.
"""

import asyncio
import concurrent.futures.thread
import contextlib
import shutil
import sys
import tempfile
import threading
import uuid
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from msgspec.structs import replace

from wms.client import remote_call
from wms.client.client import Client
from wms.client.files import members
from wms.client.job_events import JobEvents
from wms.client.job_future import CallWindow, JobFuture
from wms.client.pickled_call import EachOf, Outcome, name_of, pickled, unpickled
from wms.client.query_client import FETCHES_AT_ONCE
from wms.client.selector import RANGES_LIMIT
from wms.client.settings import ClientSettings
from wms.client.submission import check_description
from wms.errors import Rejected, Unavailable
from wms.ids import joined
from wms.job.state import ENDED, State
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.messages.commands import Selector
from wms.messages.replies import JobLine

P = ParamSpec("P")
T = TypeVar("T")

CALLS_LIMIT = 20_000
"""How many calls of one executor may be unfinished at a time."""
BATCH = 500
"""How many calls are submitted as jobs in one submission at most."""
GATHER_SECONDS = 0.02
LOOK_SECONDS = (0.5, 10.0)
"""Seconds between polls of unfinished jobs: the first while job events cannot be read, the second while they can."""
_PYTHON = JobDescription(executable="python3")
_open = weakref.WeakSet["Executor"]()


class NewCall(NamedTuple):
    """A call that is not a job yet."""

    future: JobFuture[Any]
    name: str
    raw: bytes


class Executor(concurrent.futures.Executor):
    """An executor that runs each function call as a job.

    `description` has the Python program to start and the requirements of the jobs; `files` are sent with each call. Each job calls
    `initializer(*initargs)` before its function. If the initializer raises, the call fails with that error.

    A future can be cancelled until its job has ended; the job is then killed. A program that ends waits for its calls first. If an
    error or Ctrl-C ends the `with` block or the program, the calls are killed.
    """

    def __init__(
        self,
        settings: ClientSettings | Path | None = None,
        *,
        description: JobDescription = _PYTHON,
        files: Iterable[str | Path] = (),
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        self._settings = settings
        check_description(description)
        self._description = description
        self._files: dict[str, Path | bytes] = {
            **members(files),
            "wms_remote_call.py": Path(remote_call.__file__),
        }
        if initializer is not None:
            self._files[remote_call.INITIALIZER] = pickled(initializer, initargs, {})
        self._lock = threading.Lock()
        self._new: list[NewCall] = []
        self._out: dict[int, JobFuture[Any]] = {}
        self._room = threading.Semaphore(CALLS_LIMIT)
        self._closing = False
        self._fault: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="wms-executor", daemon=True)
        self._thread.start()
        _open.add(self)

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> JobFuture[T]:
        """Submit a function call as a job, and return its future.

        Raise Rejected if the call cannot be pickled, or if too many calls are unfinished. Raise RuntimeError after
        `shutdown`, and BrokenExecutor if the connection to the system has failed and is not opened again.
        """
        if not self._room.acquire(blocking=False):
            raise Rejected(
                "TOO_MANY_CALLS",
                f"{CALLS_LIMIT:,} calls have not ended",
                "wait for some, use `map`, which does, or submit a sweep",
            )
        return self._submitted(function, args, kwargs)

    def _submitted(
        self, function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> JobFuture[T]:
        """Submit a call for which there is room, and return its future. If it cannot be submitted, its room is free again."""
        future: JobFuture[T] = JobFuture()
        try:
            call = NewCall(future, name_of(function), pickled(function, args, kwargs))
            self._add(call)
        except BaseException:
            self._room.release()
            raise
        future.add_done_callback(lambda _: self._wake())
        self._wake()
        return future

    def _add(self, call: NewCall) -> None:
        with self._lock:
            if self._fault is not None:
                raise concurrent.futures.BrokenExecutor(str(self._fault)) from self._fault
            if self._closing:
                raise RuntimeError("cannot submit to an executor that was shut down")
            self._new.append(call)

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[T]:
        """Yield the results of `fn` in the order of its arguments; each job makes `chunksize` calls, one after the other.

        At most `buffersize` jobs are ahead of the result that is yielded next. None: as many as an executor may have unfinished.
        So the arguments may be endless.

        Raise TimeoutError if a result was not there `timeout` seconds after this call (None: no bound). An error of one call
        is raised in place of the results of its whole chunk. Calls whose results are not yielded because of an error are
        cancelled.
        """
        ahead = CALLS_LIMIT if buffersize is None else buffersize
        if min(chunksize, ahead) < 1:
            raise ValueError("chunksize and buffersize must be 1 or more")
        window = partial(CallWindow, room=self._room, ahead=ahead, timeout=timeout)
        rows: Iterator[tuple[Any, ...]] = zip(*iterables, strict=False)
        if chunksize == 1:
            return window(lambda row: self._submitted(fn, row, {}), rows).results()
        each = EachOf(fn)
        chunks = zip(_chunks(rows, chunksize), strict=True)
        return chain.from_iterable(window(lambda row: self._submitted(each, row, {}), chunks).results())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for all calls. If the block has raised an error, kill them first."""
        self.shutdown(cancel_futures=error is not None)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as its class
        """Accept no more calls. If `wait` is True, return when all have ended.

        If `cancel_futures` is True, kill the unfinished calls.
        """
        with self._lock:
            self._closing = True
            futures = [call.future for call in self._new] + list(self._out.values()) if cancel_futures else []
        for future in futures:
            future.cancel()
        self._wake()
        if wait:
            self._thread.join()

    # --- below here: in the thread of the executor's own --------------------------------------------------------------

    def _wake(self) -> None:
        if not self._loop.is_closed():
            with contextlib.suppress(RuntimeError):  # it was closed between the two
                self._loop.call_soon_threadsafe(self._changed.set)

    def _work(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._run())
        except BaseException as fault:  # noqa: BLE001 - whoever waits for a call gets it
            self._give_up(fault)

    def _give_up(self, fault: BaseException) -> None:
        while isinstance(fault, BaseExceptionGroup) and len(fault.exceptions) == 1:
            fault = fault.exceptions[0]
        with self._lock:
            self._fault = fault
            futures = [call.future for call in self._new] + list(self._out.values())
            self._new, self._out = [], {}
        for future in futures:
            self._end(future, fault=fault)

    async def _run(self) -> None:
        async with Client.connect(self._settings) as client:
            shared = await client.upload(self._files)
            async with client.events() as events, asyncio.TaskGroup() as tasks:
                collecting = tasks.create_task(self._collect(client, events))
                await self._send(client, shared, events)
                collecting.cancel()

    async def _send(self, client: Client, shared: SandboxRef, events: JobEvents) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            await asyncio.sleep(GATHER_SECONDS)
            while batch := self._take():
                await self._submit(client, shared, batch)
                events.look_again()  # the jobs may have ended before they were known here
            await self._kill_cancelled(client)
            with self._lock:
                if self._closing and not self._new and not self._out:
                    return

    def _take(self) -> list[NewCall]:
        """Return the next calls to submit, at most `BATCH`, and leave them in the list of new calls. Remove cancelled calls from it."""
        cancelled = list[NewCall]()
        waiting = list[NewCall]()
        with self._lock:
            for call in self._new:
                (cancelled if call.future.cancelled() else waiting).append(call)
            self._new = waiting
        for call in cancelled:
            self._end(call.future)
        return waiting[:BATCH]

    async def _submit(self, client: Client, shared: SandboxRef, batch: list[NewCall]) -> None:
        base = self._description
        jobs = []
        for call in batch:
            pickle = await client.upload({remote_call.CALL: call.raw})
            jobs.append(
                replace(
                    base,
                    name=base.name or call.name,
                    arguments=(*base.arguments, "wms_remote_call.py"),
                    input_sandbox=(*base.input_sandbox, shared, pickle),
                    output_sandbox=(remote_call.OUTCOME,),
                )
            )
        submitting = partial(client.submit, jobs, id=uuid.uuid4().hex)
        try:
            job_ids = list((await _patiently(submitting)).job_ids())
        except Rejected as fault:
            self._drop(batch)
            for call in batch:
                self._end(call.future, fault=fault)
        else:
            self._drop(batch, job_ids)

    def _drop(self, batch: list[NewCall], job_ids: Sequence[int] = ()) -> None:
        """Remove a batch from the list of new calls. If its calls have become jobs, add them to the submitted calls."""
        with self._lock:
            self._new = self._new[len(batch) :]
            for job_id, call in zip(job_ids, batch, strict=False):
                call.future.job_id = job_id
                self._out[job_id] = call.future

    async def _kill_cancelled(self, client: Client) -> None:
        with self._lock:
            cancelled = {job_id: future for job_id, future in self._out.items() if future.cancelled()}
            for job_id in cancelled:
                del self._out[job_id]
        for future in cancelled.values():
            self._end(future)
        for selector in _selectors(cancelled):
            await _patiently(partial(client.kill, selector, "its call was cancelled"))

    async def _collect(self, client: Client, events: JobEvents) -> None:
        gate = asyncio.Semaphore(FETCHES_AT_ONCE)
        while True:
            await events.moved(LOOK_SECONDS[events.readable])
            with self._lock:
                running = [job_id for job_id, future in self._out.items() if future.running()]
                others = [job_id for job_id, future in self._out.items() if not future.running()]
            await self._follow(client, running, tuple(ENDED), gate)
            await self._follow(client, others, (State.RUNNING, *ENDED), gate)
            await asyncio.sleep(GATHER_SECONDS)

    async def _follow(
        self, client: Client, job_ids: Iterable[int], states: tuple[State, ...], gate: asyncio.Semaphore
    ) -> None:
        """Look which of these jobs are in one of the states. Mark the futures of jobs that run, and end those of jobs that have ended."""
        for selector in _selectors(job_ids):
            found = await _patiently(partial(_listed, client, replace(selector, states=states)))
            with self._lock:
                for job in found:
                    if job.job_id in self._out:
                        self._out[job.job_id].started = True
            await asyncio.gather(*(self._finish(client, job, gate) for job in found if job.state in ENDED))

    async def _finish(self, client: Client, job: JobLine, gate: asyncio.Semaphore) -> None:
        async with gate:
            try:
                returned, value, trace = await _patiently(partial(_outcome, client, job))
            except Rejected as fault:
                returned, value, trace = False, fault, ""
        with self._lock:
            future = self._out.pop(job.job_id, None)
        if future is None:  # it was cancelled meanwhile
            return
        if returned:
            self._end(future, value)
        else:
            if trace:
                value.add_note(f"at the site:\n{trace}")
            self._end(future, fault=value)

    def _end(
        self, future: concurrent.futures.Future[Any], value: Any = None, *, fault: BaseException | None = None
    ) -> None:
        """Set the result of a call to `value`, or its exception to `fault`. The caller has removed the call from the executor's lists."""
        self._room.release()
        if not future.set_running_or_notify_cancel():
            return
        if fault is None:
            future.set_result(value)
        else:
            future.set_exception(fault)


def _chunks(rows: Iterable[T], size: int) -> Iterator[list[T]]:
    left = iter(rows)
    while chunk := list(islice(left, size)):
        yield chunk


def _end_all() -> None:
    """Wait for the calls of all executors that the program did not shut down, as the standard library's executors do at exit.

    If an error or Ctrl-C has ended the program, kill the calls.
    """
    for executor in list(_open):
        executor.shutdown(cancel_futures=hasattr(sys, "last_value"))


# The only hook that is called while threads can still be started. concurrent.futures.thread uses it too, and is imported above, so
# that its own hook comes after this one: the event loop of an executor uses its threads.
threading._register_atexit(_end_all)  # type: ignore[attr-defined] # noqa: SLF001


async def _patiently(call: Callable[[], Awaitable[T]]) -> T:
    """Call until the call raises no Unavailable, with a second between two tries. Return its result."""
    while True:
        try:
            return await call()
        except Unavailable:
            await asyncio.sleep(1.0)


async def _listed(client: Client, selector: Selector) -> list[JobLine]:
    return [job async for job in client.jobs(selector)]


async def _outcome(client: Client, job: JobLine) -> Outcome:
    if job.state != "Done":
        raise Rejected(
            "JOB_FAILED",
            f"job {job.job_id} is {job.state}: {job.reason}",
            f"`wms why {job.job_id}` and `wms logs {job.job_id}` tell more",
        )
    aside = Path(tempfile.mkdtemp(prefix="wms-outcome-"))
    try:
        await client.output(job.job_id, aside / "out")
        return unpickled((aside / "out" / remote_call.OUTCOME).read_bytes(), job.job_id)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _selectors(job_ids: Iterable[int]) -> Iterator[Selector]:
    """Yield selectors that together select exactly these jobs, each with at most `RANGES_LIMIT` ranges of ids."""
    ranges = joined([(each, each) for each in job_ids])
    for start in range(0, len(ranges), RANGES_LIMIT):
        yield Selector(ids=ranges[start : start + RANGES_LIMIT])
