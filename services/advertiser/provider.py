"""The port of sources of computing elements: this machine, a batch system, an information system, a file."""

from datetime import datetime
from typing import Protocol

import msgspec

from wms.glue import glue1
from wms.site import ComputingElement


class SeenElement(msgspec.Struct, frozen=True, kw_only=True):
    """The present state of an element: its offer, and all that GLUE has names for."""

    offer: ComputingElement
    glue: glue1.GlueComputingElement
    observed_at: datetime | None = None
    """When the source counted its jobs, if not just now."""


class Provider(Protocol):
    """One source. It returns all elements that exist: a missing one is gone."""

    async def read(self) -> list[SeenElement]:
        """Read the source and return the elements.

        Raises Unavailable if the source cannot be reached, Rejected if its answer cannot be understood.
        """
