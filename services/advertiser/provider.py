"""The port of sources of computing elements: this machine, a batch system, an information system, a file."""

from datetime import datetime
from typing import Protocol

import msgspec

from wms.glue import glue1
from wms.site import ComputingElement


class SeenElement(msgspec.Struct, frozen=True, kw_only=True):
    """The present state of an element: its description for the matcher, and its GLUE record."""

    offer: ComputingElement
    glue: glue1.GlueComputingElement
    observed_at: datetime | None = None
    """The time at which the source counted the element's jobs; None if it did so at the reading."""


class Provider(Protocol):
    """A source of computing elements. It returns all existing elements: a missing one is gone."""

    async def read(self) -> list[SeenElement]:
        """Read the source and return the elements.

        Raises Unavailable if the source cannot be reached, Rejected if its answer cannot be understood.
        """
