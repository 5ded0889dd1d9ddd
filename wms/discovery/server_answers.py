"""What a server answers: computing elements, other servers to ask, and addresses that cannot be asked."""

from msgspec import Struct

from wms.discovery.address import Address
from wms.glue.glue1 import GlueComputingElement
from wms.site import ComputingElement as Offer


class FoundElement(Struct, frozen=True, kw_only=True, gc=False):
    """A computing element that a server described."""

    site: str
    """The name of the element's site as the index gives it. Without one, it is the host of the element's endpoint."""
    glue: GlueComputingElement
    offer: Offer | None = None
    """The computing element as this system's ads describe it, if it was found in an ad; else None."""

    @property
    def name(self) -> str:
        """The name of the computing element at its site, which is the name of its batch queue."""
        return self.offer.ce if self.offer else self.glue.name or self.glue.id


class ServerAnswer(Struct, frozen=True, kw_only=True, gc=False):
    """What one server answered when it was asked for computing elements."""

    elements: tuple[FoundElement, ...] = ()
    leads: tuple[Address, ...] = ()
    """The addresses of other servers to ask, as this server named them."""
    passed_over: tuple[tuple[str, str], ...] = ()
    """Addresses that cannot be asked, such as malformed ones, each with the reason."""
