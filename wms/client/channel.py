"""The port between a client and the services: requests and answers, over Kafka (`exchange`) or HTTPS (`gateway_channel`)."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, TypeVar

import msgspec

from wms.bus.topics import Topic
from wms.errors import Rejected, Unavailable
from wms.transfer import Objects

A = TypeVar("A", bound=msgspec.Struct)

IN_FLIGHT = 16
"""How many requests of one call may wait for answers at a time, so that the service never waits for the next request."""


class TopicRecord(Protocol):
    """A record of a Kafka topic, or an event that a gateway sent in its place."""

    @property
    def payload(self) -> bytes:
        """The message of the record, as encoded JSON."""


class TopicReader(Protocol):
    """A reader of a topic that returns only records written after it was opened."""

    async def poll(self, timeout_seconds: float, limit: int) -> Sequence[TopicRecord]:
        """Return up to `limit` new messages; empty if none came in time. Raise Unavailable if the topic cannot be read."""

    async def close(self) -> None:
        """Disconnect from the topic; never raise."""


class Channel(ABC):
    """A client's connection to the services: it sends requests with the user's token and returns the answers."""

    client: str
    """The random id of this client."""

    @abstractmethod
    async def open(self, timeout: float) -> None:
        """Connect. Raise Rejected if the token is invalid, Unavailable if nobody answers within `timeout` seconds."""

    @abstractmethod
    async def close(self) -> None:
        """Disconnect, and cancel the requests that wait for an answer."""

    @abstractmethod
    async def ask(
        self,
        topic: str,
        request_id: str,
        request: msgspec.Struct,
        answer: type[A],
        timeout: float,
        *,
        in_order: bool = True,
    ) -> A:
        """Send a request until it is answered, and return the answer, which is of the type `answer`.

        If `in_order` is True, the request is handled after all earlier requests of the user.

        Raise Rejected, with the reason, if the service refuses it. Raise Unavailable if no answer came within `timeout`
        seconds. The request may have been carried out then; sent again with the same id, it takes effect once.
        """

    @abstractmethod
    async def end_of(self, topic: Topic) -> TopicReader:
        """Return a reader of a topic that reads only new records. Raise Unavailable if this client may not read the topic."""

    def sandboxes(self, job_id: int | None) -> Objects | None:  # noqa: ARG002 - it is the other way's
        """Return the sandbox store behind this channel; None if the client reaches the store by itself.

        `job_id` is the job whose output will be fetched; None if no output will be.
        """
        return None

    async def ask_all(
        self,
        topic: str,
        requests: Sequence[tuple[str, msgspec.Struct]],
        answer: type[A],
        timeout: float,
        *,
        in_order: bool = True,
    ) -> list[A | Rejected | Unavailable]:
        """Send several (id, request) pairs concurrently. Return the answer or the error of each, in the order of the requests.

        Each answer is of the type `answer`. `timeout` bounds each request, in seconds. If `in_order` is True, each request is handled after
        all earlier requests of the user.
        """
        gate = asyncio.Semaphore(IN_FLIGHT)

        async def one(request_id: str, request: msgspec.Struct) -> A | Rejected | Unavailable:
            async with gate:
                try:
                    return await self.ask(topic, request_id, request, answer, timeout, in_order=in_order)
                except (Rejected, Unavailable) as fault:
                    return fault

        return await asyncio.gather(*(one(*each) for each in requests))
