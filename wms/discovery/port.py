"""The port to what tells of computing elements: a web server, a file, a topic of ads."""

from typing import Protocol

from wms.discovery.address import Address
from wms.discovery.server_answers import ServerAnswer


class Source(Protocol):
    """Asks servers of one kind."""

    async def ask(self, address: Address) -> ServerAnswer:
        """Ask one server, once. The caller bounds the time that this may take.

        Raises Unavailable when it does not answer now, Rejected when what it says cannot be understood.
        """
