"""Deliveries, which are decoded messages as handlers get them, and the types of the functions that a consumer calls."""

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from wms.auth.principal import Principal
from wms.bus.reader import Message
from wms.db.database import Transaction
from wms.db.dead_letter import DeadLetter
from wms.errors import Rejected

M = TypeVar("M")
D_contra = TypeVar("D_contra", contravariant=True)


class Delivery(msgspec.Struct, Generic[M], frozen=True):
    """A decoded message with its verified sender. The sender is None if messages of the topic carry no tokens."""

    principal: Principal | None
    message: M
    prepared: Any = None
    """The value that the message's preparation returned; None if there was no preparation."""


class Decoded(msgspec.Struct, Generic[M], frozen=True):
    """A Kafka record after decoding: a delivery, or the fault for which it is refused. It has both if only its token is invalid."""

    record: Message
    delivery: Delivery[M] | None
    fault: Rejected | None = None
    error: str = ""
    """The error for which the message becomes a dead letter, as stored with it. The sender gets `fault` instead."""
    log_gap_id: int | None = None
    """The gap for which the message is kept aside (`wms.db.log_gap`); None for most."""

    @property
    def owner(self) -> str:
        """The verified sender of the message; empty if there is none."""
        principal = self.delivery.principal if self.delivery is not None else None
        return principal.owner if principal is not None else ""

    @property
    def size(self) -> int:
        """The size of the message's payload in bytes."""
        return len(self.record.payload)

    def letter(self, error: str) -> DeadLetter:
        """Return the record as a dead letter, to be stored with the text `error`."""
        principal = self.delivery.principal if self.delivery else None
        return DeadLetter(
            partition=self.record.partition,
            offset=self.record.offset,
            key=self.record.key,
            payload=self.record.payload,
            principal=msgspec.json.encode(principal).decode() if principal else None,
            error=error,
            sent_at=self.record.time,
            log_gap_id=self.log_gap_id,
        )


Handler = Callable[[Transaction, list[Delivery[M]]], Awaitable[None]]
OnRefused = Callable[[Transaction, M, Rejected, str], Awaitable[None]]
"""A function that answers the sender of a message that was not handled.

It gets the transaction, the message, the fault and the owner. The owner is the verified one, or else the one that the token claims. It must change
nothing in the database except by its answer.
"""

Steps = Generator[None, None, Any]
"""The work of a preparation: a generator that yields every few milliseconds. It returns the value for `Delivery.prepared`."""


class Preparation(Protocol[D_contra]):
    """Work on messages before their transaction and outside the event loop, such as parsing and validation."""

    async def refresh(self) -> None:
        """Read again from the database or memory the data that preparations use."""

    def prepare(self, delivery: D_contra) -> Steps | None:
        """Return the work for one delivery, to be run in another thread; None if it needs no preparation.

        The work raises `NeedsProcess` if its documents are not small.
        """

    async def prepare_parsed(self, delivery: D_contra) -> Steps:
        """Parse the documents of a delivery in a parsing process, and return the work that is left. Raise Rejected if they are refused."""
