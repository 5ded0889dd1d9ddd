"""The client for programs without asyncio: its calls block.

    from wms.client.sync import Client, JobDescription, select

    with Client() as client:
        submitted = client.submit(JobDescription(executable="hostname"))
        print(client.wait(submitted.selector()))

The calls run on an event loop in a thread of the client's own, so the client also works inside another event loop or a notebook.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from functools import wraps
from inspect import signature
from pathlib import Path
from types import GenericAlias, TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, get_args

from wms.client import (
    ENDED,
    ClientSettings,
    JobDescription,
    Rejected,
    Selector,
    Submission,
    Unavailable,
    select,
)
from wms.client.client import Client as AsyncClient
from wms.client.credential import UserCredential
from wms.client.query_client import TIMEOUT_SECONDS

__all__ = [
    "ENDED",
    "Client",
    "ClientSettings",
    "JobDescription",
    "Rejected",
    "Selector",
    "Submission",
    "Unavailable",
    "select",
]


def __dir__() -> list[str]:
    return __all__


P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[AsyncClient, P], Awaitable[T]],
) -> Callable[Concatenate["Client", P], T]:
    @wraps(method)
    def call(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(_awaited(method(self._client, *args, **kwargs)))

    return call


def _stepping(
    method: Callable[Concatenate[AsyncClient, P], AsyncIterator[T]],
) -> Callable[Concatenate["Client", P], Iterator[T]]:
    @wraps(method)
    def call(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[T]:
        items = method(self._client, *args, **kwargs)
        try:
            while (item := self._run(_next(items))) is not None:
                yield item
        finally:
            self._run(_closed(items))

    # `help` shows what this one yields, not what the asynchronous one does.
    own = signature(method)
    items = GenericAlias(Iterator, get_args(own.return_annotation)[:1])
    call.__signature__ = own.replace(return_annotation=items)  # type: ignore[attr-defined]
    return call


class Client:
    """A blocking form of `wms.client.Client`, with the same methods, arguments, results and errors. Use it in a `with` block."""

    def __init__(
        self, settings: ClientSettings | Path | None = None, *, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._opening = (settings, timeout)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wms-client", daemon=True)
        self._context: AbstractAsyncContextManager[AsyncClient] | None = None
        self._open: AsyncClient | None = None

    def __enter__(self) -> Self:
        settings, timeout = self._opening
        self._thread.start()
        try:
            self._context = AsyncClient.connect(settings, timeout=timeout)
            self._open = self._run(self._context.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._context is not None
        try:
            # An error of the block is raised by the block itself; here the connection is closed.
            self._run(self._context.__aexit__(None, None, None))
        finally:
            self._end()

    def credential(self) -> UserCredential:
        """Return the token in use with its claims. Raise Rejected if it is missing or has expired."""
        return self._client.credential()

    submit = _blocking(AsyncClient.submit)
    upload = _blocking(AsyncClient.upload)
    jobs = _stepping(AsyncClient.jobs)
    sweeps = _stepping(AsyncClient.sweeps)
    counts = _blocking(AsyncClient.counts)
    reasons = _blocking(AsyncClient.reasons)
    show = _blocking(AsyncClient.show)
    descriptions = _blocking(AsyncClient.descriptions)
    why = _blocking(AsyncClient.why)
    peek = _blocking(AsyncClient.peek)
    queues = _blocking(AsyncClient.queues)
    sites = _blocking(AsyncClient.sites)
    pilots = _blocking(AsyncClient.pilots)
    pilot_orders = _blocking(AsyncClient.pilot_orders)
    start_pilots = _blocking(AsyncClient.start_pilots)
    stop_pilots = _blocking(AsyncClient.stop_pilots)
    cancel_reservations = _blocking(AsyncClient.cancel_reservations)
    shares = _blocking(AsyncClient.shares)
    limits = _blocking(AsyncClient.limits)
    whoami = _blocking(AsyncClient.whoami)
    audit_trail = _stepping(AsyncClient.audit_trail)
    usage = _stepping(AsyncClient.usage)
    revocations = _blocking(AsyncClient.revocations)
    revoke = _blocking(AsyncClient.revoke)
    dead_letters = _stepping(AsyncClient.dead_letters)
    dead_letter = _blocking(AsyncClient.dead_letter)
    replay_dead_letters = _blocking(AsyncClient.replay_dead_letters)
    drop_dead_letters = _blocking(AsyncClient.drop_dead_letters)
    skip_message = _blocking(AsyncClient.skip_message)
    set_limit = _blocking(AsyncClient.set_limit)
    drop_limit = _blocking(AsyncClient.drop_limit)
    set_share = _blocking(AsyncClient.set_share)
    reset_share = _blocking(AsyncClient.reset_share)
    kill = _blocking(AsyncClient.kill)
    hold = _blocking(AsyncClient.hold)
    release = _blocking(AsyncClient.release)
    reschedule = _blocking(AsyncClient.reschedule)
    edit = _blocking(AsyncClient.edit)
    remove = _blocking(AsyncClient.remove)
    order = _blocking(AsyncClient.order)
    wait = _blocking(AsyncClient.wait)
    watch = _stepping(AsyncClient.watch)
    as_completed = _stepping(AsyncClient.as_completed)
    map = _stepping(AsyncClient.map)
    cancel = _blocking(AsyncClient.cancel)
    output = _blocking(AsyncClient.output)
    results = _blocking(AsyncClient.results)
    outputs = _blocking(AsyncClient.outputs)
    upload_each = _blocking(AsyncClient.upload_each)

    @property
    def _client(self) -> AsyncClient:
        if self._open is None:
            raise Rejected(
                "NOT_CONNECTED", "this client is not connected", "use it as `with Client() as client:`"
            )
        return self._open

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        under_way = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return under_way.result()
        except BaseException:
            under_way.cancel()
            raise

    def _end(self) -> None:
        self._open = None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _awaited(call: Awaitable[T]) -> T:
    return await call


async def _next(items: AsyncIterator[T]) -> T | None:
    return await anext(items, None)


async def _closed(items: AsyncIterator[Any]) -> None:
    """Close an async iterator that its caller left early, with the resources that it holds."""
    if isinstance(items, AsyncGenerator):
        await items.aclose()
