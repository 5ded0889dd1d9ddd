"""The answer of a server: elements, other servers to ask, and addresses that cannot be asked."""

from msgspec import Struct

from wms.discovery.address import Address
from wms.glue.glue1 import GlueComputingElement
from wms.site import ComputingElement as Offer


class FoundElement(Struct, frozen=True, kw_only=True):
    """A computing element that was found."""

    site: str
    """The name of its site in the index, or the host of its endpoint if the index has none."""
    glue: GlueComputingElement
    offer: Offer | None = None
    """The element as our own ads describe it, if the source is a topic of ads."""

    @property
    def name(self) -> str:
        """Its name at its site, which is that of the queue."""
        return self.offer.ce if self.offer else self.glue.name or self.glue.id


class ServerAnswer(Struct, frozen=True, kw_only=True):
    """One server's answer."""

    elements: tuple[FoundElement, ...] = ()
    leads: tuple[Address, ...] = ()
    """The servers to ask next."""
    passed_over: tuple[tuple[str, str], ...] = ()
    """Addresses that cannot be asked, with the reason: an LDAP server, a malformed address."""
