"""A `concurrent.futures.Executor` whose functions run as jobs at the sites.

    from wms.client.executor import Executor

    with Executor() as executor:
        print(list(executor.map(pow, [2, 3], [10, 10])))

Each call is a job, so calls should take some seconds at least. Functions and arguments are pickled by `cloudpickle` if it is
installed, else by the standard library. The latter needs functions of modules that are at the site or go along by `files`. The
result of a job is unpickled on this machine, so use only sites that you trust to run programs on it.
"""

import asyncio
import concurrent.futures
import contextlib
import importlib
import pickle
import shutil
import tempfile
import threading
import types
import uuid
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from msgspec.structs import replace

from wms.client import remote_call
from wms.client.client import Client
from wms.client.files import members
from wms.client.job_events import JobEvents
from wms.client.settings import ClientSettings
from wms.errors import Rejected, Unavailable, WmsError
from wms.ids import joined
from wms.job.state import ENDED
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.messages.commands import Selector
from wms.messages.replies import JobLine

P = ParamSpec("P")
T = TypeVar("T")

CALLS_LIMIT = 20_000
"""The largest number of unfinished calls."""
CALL_BYTES = 32 * 1024 * 1024
BATCH = 500
"""The largest number of calls in one submission."""
GATHER_SECONDS = 0.02
LOOK_SECONDS = (0.5, 10.0)
"""Seconds between polls of unfinished jobs: while events cannot be read, and while they can."""
RANGES = 1_000
_PYTHON = JobDescription(executable="python3")
Call = tuple[concurrent.futures.Future[Any], bytes]


class Executor(concurrent.futures.Executor):
    """An executor that runs each function call as a job.

    `description` contains the Python and the requirements; `files` are sent with each call.
    """

    def __init__(
        self,
        settings: ClientSettings | Path | None = None,
        *,
        description: JobDescription = _PYTHON,
        files: Iterable[str | Path] = (),
    ) -> None:
        self._settings = settings
        self._description = description
        self._files: dict[str, Path | bytes] = {
            **members(files),
            "wms_remote_call.py": Path(remote_call.__file__),
        }
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

    def submit(
        self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> concurrent.futures.Future[T]:
        """Submit a function call as a job, and return its future.

        Rejected, at once: it cannot be pickled, or too many calls are unfinished.
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

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as its class
        """Accept no more calls. With `wait` return when all have ended; with `cancel_futures` kill the unfinished calls."""
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
        with self._lock:
            self._fault = fault
            futures = [future for future, _ in self._new] + list(self._out.values())
        for future in futures:
            if not future.done():
                future.set_exception(fault)

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
        with self._lock:
            batch, self._new = self._new[:BATCH], self._new[BATCH:]
            self._calls -= sum(future.cancelled() for future, _ in batch)
        return [call for call in batch if not call[0].cancelled()]

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
        submission_id = uuid.uuid4().hex
        try:
            taken = await _patiently(partial(client.submit, jobs, id=submission_id))
        except Rejected as fault:
            for future, _ in batch:
                self._end(future, fault=fault)
            return
        with self._lock:
            self._out.update(zip(taken.job_ids(), (future for future, _ in batch), strict=True))

    async def _kill_cancelled(self, client: Client) -> None:
        with self._lock:
            cancelled = [job_id for job_id, future in self._out.items() if future.cancelled()]
            for job_id in cancelled:
                del self._out[job_id]
            self._calls -= len(cancelled)
        if cancelled:
            await _patiently(partial(client.kill, _ids(cancelled), "its call was cancelled"))

    async def _collect(self, client: Client, events: JobEvents) -> None:
        while True:
            await events.moved(LOOK_SECONDS[events.readable])
            with self._lock:
                out = list(self._out)
            if out:
                selector = replace(_ids(out), states=tuple(ENDED))
                found = await _patiently(partial(_listed, client, selector))
                await asyncio.gather(*(self._finish(client, job) for job in found))
            await asyncio.sleep(GATHER_SECONDS)

    async def _finish(self, client: Client, job: JobLine) -> None:
        with self._lock:
            future = self._out.get(job.job_id)
        if future is None or future.cancelled():
            return
        try:
            returned, value, trace = await _patiently(partial(_outcome, client, job))
        except Rejected as fault:
            returned, value, trace = False, fault, ""
        with self._lock:
            self._out.pop(job.job_id, None)
        if returned:
            self._end(future, value)
        else:
            if trace:
                value.add_note(f"at the site:\n{trace}")
            self._end(future, fault=value)

    def _end(
        self, future: concurrent.futures.Future[Any], value: Any = None, *, fault: BaseException | None = None
    ) -> None:
        with self._lock:
            self._calls -= 1
        if not future.set_running_or_notify_cancel():
            return
        if fault is None:
            future.set_result(value)
        else:
            future.set_exception(fault)


class _Local(pickle.Pickler):
    """A pickler that refuses classes and functions of the main program, which a site does not have."""

    def persistent_id(self, value: Any) -> None:
        """Check an object before it is pickled; raise PicklingError if a site could not unpickle it. Return None."""
        if isinstance(value, type | types.FunctionType) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{value.__qualname__} is defined in the program itself (__main__)")


def pickled(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Return a pickled call. Rejected: it cannot be pickled, a site could not unpickle it, or it is too large."""
    call = (function, args, kwargs)
    try:
        raw = _dumped(call)
    except Exception as error:
        name = getattr(function, "__qualname__", repr(function))[:100]
        raise Rejected(
            "CANNOT_BE_SENT",
            f"the call of {name} cannot be sent: {type(error).__name__}: {str(error)[:300]}",
            "pip install cloudpickle, or put the function into a module and give it: Executor(files=['module.py'])",
        ) from error
    if len(raw) > CALL_BYTES:
        raise Rejected(
            "CALL_TOO_LARGE",
            f"function and arguments are {len(raw):,} bytes, more than {CALL_BYTES:,}",
            "give the data by Executor(files=[...]), or let the job read them",
        )
    return raw


def _dumped(call: object) -> bytes:
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ImportError:
        file = BytesIO()
        _Local(file).dump(call)
        return file.getvalue()
    raw: bytes = cloudpickle.dumps(call)
    return raw


async def _patiently(call: Callable[[], Awaitable[T]]) -> T:
    """Repeat a call until the system answers, and return its result."""
    while True:
        try:
            return await call()
        except Unavailable:
            await asyncio.sleep(1.0)


async def _listed(client: Client, selector: Selector) -> list[JobLine]:
    return [job async for job in client.jobs(selector)]


async def _outcome(client: Client, job: JobLine) -> tuple[bool, Any, str]:
    if job.state != "Done":
        raise Rejected(
            "JOB_FAILED",
            f"job {job.job_id} is {job.state}: {job.reason}",
            f"`wms why {job.job_id}` and `wms logs {job.job_id}` tell more",
        )
    aside = Path(tempfile.mkdtemp(prefix="wms-outcome-"))
    try:
        await client.output(job.job_id, aside / "out")
        returned, value, trace = pickle.loads((aside / "out" / remote_call.OUTCOME).read_bytes())  # noqa: S301 - the module says it
    except (OSError, WmsError):
        raise
    except Exception as error:
        text = f"what job {job.job_id} returned cannot be read here: {type(error).__name__}: {error}"
        raise Rejected(
            "OUTCOME_UNREADABLE", text, "return plain values, or import the same modules here"
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return returned, value, trace


def _ids(job_ids: list[int]) -> Selector:
    return Selector(ids=joined([(each, each) for each in job_ids])[:RANGES])
