"""Reads an index from a file of this machine."""

import asyncio
from pathlib import Path
from urllib.parse import unquote, urlsplit

from wms.discovery.address import Address
from wms.discovery.document import SIZE_LIMIT, read_index
from wms.discovery.server_answers import ServerAnswer
from wms.errors import Unavailable


class FileSource:
    """A source of elements that reads indexes at `file:` addresses."""

    async def ask(self, address: Address) -> ServerAnswer:
        """Parse the index in the file at this address. Raise Unavailable if the file cannot be opened, Rejected if it is no index."""
        return await asyncio.to_thread(_read, address.url)


def _read(url: str) -> ServerAnswer:
    path = Path(unquote(urlsplit(url).path))
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise Unavailable(f"{path}: {error.strerror}") from None
    return read_index(data, url)
