"""Deliveries: decoded messages as handlers get them, and the types of a consumer's callbacks."""

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
    """A message with its verified sender."""

    principal: Principal | None
    message: M
    prepared: Any = None
    """The result of the message's preparation; None if there was none."""


class Decoded(msgspec.Struct, Generic[M], frozen=True):
    """A decoded record: a delivery, a fault, or both if its token is not accepted."""

    record: Message
    delivery: Delivery[M] | None
    fault: Rejected | None = None
    error: str = ""
    """The error of the message's preparation. The dead letter contains it, and the sender gets the fault."""

    @property
    def owner(self) -> str:
        """The verified sender; empty if there is none."""
        principal = self.delivery.principal if self.delivery is not None else None
        return principal.owner if principal is not None else ""

    @property
    def size(self) -> int:
        """The size of the payload in bytes."""
        return len(self.record.payload)

    def letter(self, error: str) -> DeadLetter:
        """Return the record as a dead letter with the given error."""
        principal = self.delivery.principal if self.delivery else None
        return DeadLetter(
            partition=self.record.partition,
            offset=self.record.offset,
            key=self.record.key,
            payload=self.record.payload,
            principal=msgspec.json.encode(principal).decode() if principal else None,
            error=error,
        )


Handler = Callable[[Transaction, list[Delivery[M]]], Awaitable[None]]
OnRefused = Callable[[Transaction, M, Rejected, str], Awaitable[None]]
"""The callback for a message that was not handled, with its owner as verified or claimed. It may answer the owner, and must not act."""

Steps = Generator[None, None, Any]
"""The steps of a preparation: a generator that yields after every few milliseconds and returns the `prepared` of its delivery."""


class Preparation(Protocol[D_contra]):
    """Work on a message before its transaction and outside the event loop, such as parsing and validation."""

    async def refresh(self) -> None:
        """Update the data that preparations use."""

    def prepare(self, delivery: D_contra) -> Steps | None:
        """Return the steps for one delivery, which run in another thread; None if it needs no preparation."""
