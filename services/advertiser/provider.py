"""The port to what tells of computing elements: this machine, a batch system, an information system, a file."""

from datetime import datetime
from typing import Protocol

import msgspec

from wms.glue import glue1
from wms.site import ComputingElement


class SeenElement(msgspec.Struct, frozen=True, kw_only=True):
    """An element as it is now: what it offers, and all that GLUE has names for."""

    offer: ComputingElement
    glue: glue1.GlueComputingElement
    observed_at: datetime | None = None
    """When the source counted jobs there, if that was not just now."""


class Provider(Protocol):
    """One source. What it gives are all the elements there are: one that is not among them any more is gone."""

    async def read(self) -> list[SeenElement]:
        """Look, and return the elements.

        Raises Unavailable when the source cannot be reached now, Rejected when what it says cannot be understood.
        """
