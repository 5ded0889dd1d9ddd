"""The port for sources of computing elements: this machine, a batch system, an information system or a file."""

from datetime import datetime
from typing import Protocol

import msgspec

from wms.glue import glue1
from wms.site import ComputingElement


class SeenElement(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a computing element at one reading: its description for matchers, and its GLUE record."""

    offer: ComputingElement
    glue: glue1.GlueComputingElement
    observed_at: datetime | None = None
    """When the source counted the computing element's jobs. None: when the source was read."""


class Provider(Protocol):
    """A source of computing elements. Each reading returns all of them. An element that is missing there no longer exists."""

    async def read(self) -> list[SeenElement]:
        """Read the source and return its computing elements.

        Raise Unavailable if the source cannot be reached, Rejected if its answer cannot be understood.
        """
