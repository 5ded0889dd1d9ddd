"""Deliveries: messages as handlers get them, and the other hooks of a handler."""

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
    """One message and who sent it."""

    principal: Principal | None
    message: M
    prepared: Any = None
    """The result of the message's preparation; None where there is none."""


class Decoded(msgspec.Struct, Generic[M], frozen=True):
    """A decoded record: a delivery, a fault, or both when its token is not accepted."""

    record: Message
    delivery: Delivery[M] | None
    fault: Rejected | None = None
    error: str = ""
    """The error of its preparation. It goes to the dead letters, and its sender gets the fault."""

    @property
    def owner(self) -> str:
        """Return the verified sender; empty where there is none."""
        principal = self.delivery.principal if self.delivery is not None else None
        return principal.owner if principal is not None else ""

    @property
    def size(self) -> int:
        """Return the bytes of the payload."""
        return len(self.record.payload)

    def letter(self, error: str) -> DeadLetter:
        """Return the dead letter of the record."""
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
"""Called for a message that was not handled, with its owner as verified or claimed. It may answer and must not act."""

Steps = Generator[None, None, Any]
"""A preparation: it yields after every few milliseconds of work, and returns the `prepared` of its delivery."""


class Preparation(Protocol[D_contra]):
    """Work for a message before its transaction, away from the event loop: parsing and judging it."""

    async def refresh(self) -> None:
        """Refresh the data that preparations use."""

    def prepare(self, delivery: D_contra) -> Steps | None:
        """Return the steps for one delivery, which run in another thread; None if there are none."""
