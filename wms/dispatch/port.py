"""The port to a middleware: send pilots, follow them, end them; many at a time, under names that we chose.

A pilot is known by its id from before it is sent, so that after a crash between sending and writing down what was sent,
`follow` finds it again.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from wms.ids import PilotId


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """A pilot to be sent: `config` is its job agent's TOML, `token` its credential, never to be shown."""

    pilot_id: PilotId
    site: str
    ce: str
    slots: int
    config: str
    token: str


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """What a middleware knows of a pilot."""

    pilot_id: PilotId
    state: Literal["Submitted", "Waiting", "Running", "Done", "Failed", "Aborted"]
    reference: str | None = None
    """The middleware's own name for it."""
    reason: str = ""

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.state in ("Done", "Failed", "Aborted")


class Dispatcher(Protocol):
    """One middleware. Raises Unavailable when it cannot be reached at all."""

    async def send(self, orders: Sequence[Order]) -> list[Sighting]:
        """Send pilots; one that could not be sent comes back as Failed with its reason."""

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[Sighting]:
        """Return what is known of pilots; one that was never sent, or is forgotten, comes back as Aborted."""

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        """End pilots; those that have ended already stay so."""
