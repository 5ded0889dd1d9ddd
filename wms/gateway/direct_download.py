"""Downloads through a gateway that may come from its store directly: the gateway then answers with a signed URL of the store.

A client asks for that by `Prefer: redirect`. Its token goes to the gateway alone, never to the store.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from wms.errors import Rejected, Unavailable
from wms.gateway.address import checked_url

if TYPE_CHECKING:  # clients without a gateway need no HTTP client
    import aiohttp

REDIRECTED: Final = 307
PREFERENCE: Final = "redirect"
"""The value of the header `Prefer` by which a client says that it follows a signed URL."""


@asynccontextmanager
async def download(
    session: "aiohttp.ClientSession", url: str, headers: Mapping[str, str], timeout: "aiohttp.ClientTimeout"
) -> "AsyncIterator[aiohttp.ClientResponse]":
    """Open a download, for an `async with` block: the gateway's answer, or that of the store to which the gateway sends the caller.

    `headers` have the token. `timeout` is that of each of the two requests. Raise Unavailable if the store does not send the object: its URL may have expired, so that the gateway is to
    be asked anew. Raise Rejected if the store's URL is none, or is without TLS and not on this machine.
    """
    wanted = {**headers, "Prefer": PREFERENCE}
    async with session.get(url, headers=wanted, timeout=timeout, allow_redirects=False) as answer:
        if answer.status != REDIRECTED:
            yield answer
            return
        place = _checked(answer.headers.get("Location", ""))
    bare = {name: value for name, value in headers.items() if name not in {"Authorization", "Content-Type"}}
    async with session.get(place, headers=bare, timeout=timeout, allow_redirects=False) as answer:
        if answer.status not in {200, 206, 416}:
            raise Unavailable(f"the sandbox store answers with status {answer.status}")
        yield answer


def _checked(url: str) -> str:
    try:
        checked_url(url.partition("?")[0])
    except Rejected:
        raise Rejected(
            "BAD_STORE", "the gateway sends us to a store without TLS", "its operators give it TLS"
        ) from None
    return url
