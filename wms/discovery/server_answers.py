"""What a server tells: elements, other servers that are to be asked, and what of it leads nowhere."""

from msgspec import Struct

from wms.discovery.address import Address
from wms.glue.glue1 import GlueComputingElement
from wms.site import ComputingElement as Offer


class FoundElement(Struct, frozen=True, kw_only=True):
    """A computing element that was found."""

    site: str
    """What its index calls its site, or the host of its door where that says nothing."""
    glue: GlueComputingElement
    offer: Offer | None = None
    """What pilots would find there, where the source says it in our own words."""

    @property
    def name(self) -> str:
        """What it is called at its site: the queue."""
        return self.offer.ce if self.offer else self.glue.name or self.glue.id


class ServerAnswer(Struct, frozen=True, kw_only=True):
    """One server's answer."""

    elements: tuple[FoundElement, ...] = ()
    leads: tuple[Address, ...] = ()
    """Who is to be asked next."""
    passed_over: tuple[tuple[str, str], ...] = ()
    """What leads nowhere, and why: an LDAP server, an address that is none."""
