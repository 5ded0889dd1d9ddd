"""The port to sources of computing elements: a web server, a file, a topic of ads."""

from typing import Protocol

from wms.discovery.address import Address
from wms.discovery.server_answers import ServerAnswer


class Source(Protocol):
    """A client that asks servers of one kind for computing elements."""

    async def ask(self, address: Address) -> ServerAnswer:
        """Ask the server at this address once and return its answer. There is no time limit of its own; the caller sets one.

        Raise Unavailable if there is no answer, Rejected if the answer cannot be parsed.
        """
