"""Deliveries: messages as a handler gets them, and what a handler may do beside handling."""

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
    """What the preparation of the message returned; None where there is none."""


class Decoded(msgspec.Struct, Generic[M], frozen=True):
    """A record and what was found in it: a delivery, a fault, or both when its token is not accepted."""

    record: Message
    delivery: Delivery[M] | None
    fault: Rejected | None = None
    error: str = ""
    """What went wrong when it was prepared; it goes to the dead letters, and its sender is told the fault."""

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
"""Told of a message that was not handled, and whose it is or claims to be: to say so, never to act on it."""

Steps = Generator[None, None, Any]
"""A preparation: it yields after every few milliseconds of work, and returns what the handler is given as `prepared`."""


class Preparation(Protocol[D_contra]):
    """What can be done for a message before its transaction, away from the event loop: to parse it, to judge it."""

    async def refresh(self) -> None:
        """Bring up to date what preparations look at."""

    def prepare(self, delivery: D_contra) -> Steps | None:
        """Return the steps for one delivery; None if there is nothing to prepare. They run in another thread."""
