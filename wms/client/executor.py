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
import tempfile
import threading
import uuid
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from msgspec.structs import replace

from wms.client import remote_call
from wms.client.client import Client
from wms.client.files import members
from wms.client.job_events import JobEvents
from wms.client.pickled_call import EachOf, Outcome, pickled, unpickled
from wms.client.query_client import FETCHES_AT_ONCE
from wms.client.selector import RANGES_LIMIT
from wms.client.settings import ClientSettings
from wms.errors import Rejected, Unavailable
from wms.ids import joined
from wms.job.state import ENDED
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
Call = tuple[concurrent.futures.Future[Any], bytes]


class Executor(concurrent.futures.Executor):
    """An executor that runs each function call as a job.

    `description` has the Python program to start and the requirements of the jobs; `files` are sent with each call. Each job calls
    `initializer(*initargs)` before its function. If the initializer raises, the call fails with that error.

    A future can be cancelled until its job has ended; the job is then killed. A program that ends waits for its calls first.
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
        self._description = description
        self._files: dict[str, Path | bytes] = {
            **members(files),
            "wms_remote_call.py": Path(remote_call.__file__),
        }
        if initializer is not None:
            self._files[remote_call.INITIALIZER] = pickled(initializer, initargs, {})
        self._lock = threading.Lock()
        self._new: list[Call] = []
        self._out: dict[int, concurrent.futures.Future[Any]] = {}
        self._calls = 0
        self._closing = False
        self._fault: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._thread = threading.Thread(target=self._work, name="wms-executor", daemon=True)
        self._thread.start()
        _open.add(self)

    def submit(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[T]:
        """Submit a function call as a job, and return its future.

        Raise Rejected if the call cannot be pickled, or if too many calls are unfinished. Raise RuntimeError after
        `shutdown`, and BrokenExecutor if the connection to the system has failed and is not opened again.
        """
        raw = pickled(function, args, kwargs)
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        with self._lock:
            if self._fault is not None:
                raise concurrent.futures.BrokenExecutor(str(self._fault)) from self._fault
            if self._closing:
                raise RuntimeError("cannot submit to an executor that was shut down")
            if self._calls >= CALLS_LIMIT:
                raise Rejected(
                    "TOO_MANY_CALLS",
                    f"{CALLS_LIMIT:,} calls have not ended",
                    "wait for some, or submit a sweep",
                )
            self._calls += 1
            self._new.append((future, raw))
        future.add_done_callback(lambda _: self._wake())
        self._wake()
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[T]:
        """Yield the results of `fn` in the order of its arguments; each job makes `chunksize` calls, one after the other.

        Raise TimeoutError if a result was not there `timeout` seconds after this call (None: no bound). An error of one call
        is raised in place of the results of its whole chunk. Calls whose results are not yielded because of an error are
        cancelled.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be 1 or more")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout)
        rows = _chunks(zip(*iterables, strict=False), chunksize)
        return chain.from_iterable(super().map(EachOf(fn), rows, timeout=timeout))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as its class
        """Accept no more calls. If `wait` is True, return when all have ended.

        If `cancel_futures` is True, kill the unfinished calls.
        """
        with self._lock:
            self._closing = True
            futures = [future for future, _ in self._new] + list(self._out.values()) if cancel_futures else []
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
            futures = [future for future, _ in self._new] + list(self._out.values())
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

    def _take(self) -> list[Call]:
        """Return the next calls to submit, at most `BATCH`, and leave them in the list of new calls. Remove cancelled calls from it."""
        cancelled = list[Call]()
        waiting = list[Call]()
        with self._lock:
            for call in self._new:
                (cancelled if call[0].cancelled() else waiting).append(call)
            self._new = waiting
        for future, _ in cancelled:
            self._end(future)
        return waiting[:BATCH]

    async def _submit(self, client: Client, shared: SandboxRef, batch: list[Call]) -> None:
        base = self._description
        jobs = []
        for _, raw in batch:
            call = await client.upload({remote_call.CALL: raw})
            jobs.append(
                replace(
                    base,
                    arguments=(*base.arguments, "wms_remote_call.py"),
                    input_sandbox=(*base.input_sandbox, shared, call),
                    output_sandbox=(remote_call.OUTCOME,),
                )
            )
        submitting = partial(client.submit, jobs, id=uuid.uuid4().hex)
        try:
            job_ids = list((await _patiently(submitting)).job_ids())
        except Rejected as fault:
            self._drop(batch)
            for future, _ in batch:
                self._end(future, fault=fault)
        else:
            self._drop(batch, job_ids)

    def _drop(self, batch: list[Call], job_ids: Sequence[int] = ()) -> None:
        """Remove a batch from the list of new calls. If its calls have become jobs, add them to the submitted calls."""
        with self._lock:
            self._new = self._new[len(batch) :]
            self._out.update(zip(job_ids, (future for future, _ in batch), strict=False))

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
                out = list(self._out)
            for selector in _selectors(out):
                ended = await _patiently(partial(_listed, client, replace(selector, states=tuple(ENDED))))
                await asyncio.gather(*(self._finish(client, job, gate) for job in ended))
            await asyncio.sleep(GATHER_SECONDS)

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
        with self._lock:
            self._calls -= 1
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
    """Wait for the calls of all executors that the program did not shut down, as the standard library's executors do at exit."""
    for executor in list(_open):
        executor.shutdown()


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
