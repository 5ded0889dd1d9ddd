"""What a server answers: computing elements, other servers to ask, and addresses that cannot be asked."""

from msgspec import Struct

from wms.discovery.address import Address
from wms.glue.glue1 import GlueComputingElement
from wms.site import ComputingElement as Offer


class FoundElement(Struct, frozen=True, kw_only=True):
    """A computing element that a server described."""

    site: str
    """The name of the element's site in the index; the host of its endpoint if the index has none."""
    glue: GlueComputingElement
    offer: Offer | None = None
    """The computing element as this system's ads describe it, if it was found in an ad; else None."""

    @property
    def name(self) -> str:
        """The name of the computing element at its site, which is that of its queue."""
        return self.offer.ce if self.offer else self.glue.name or self.glue.id


class ServerAnswer(Struct, frozen=True, kw_only=True):
    """What one server answered when it was asked for computing elements."""

    elements: tuple[FoundElement, ...] = ()
    leads: tuple[Address, ...] = ()
    """Other servers to ask, which this server named."""
    passed_over: tuple[tuple[str, str], ...] = ()
    """Addresses that cannot be asked, such as malformed ones, each with the reason."""
