"""Downloads of sandboxes through a gateway, which may redirect the client to a signed URL of its store.

A client allows that by the header `Prefer: redirect`. Its token is sent only to the gateway, never to the store.
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
"""The value of the header `Prefer` by which a client says that it follows a redirect to a signed URL."""


@asynccontextmanager
async def download(
    session: "aiohttp.ClientSession", url: str, headers: Mapping[str, str], timeout: "aiohttp.ClientTimeout"
) -> "AsyncIterator[aiohttp.ClientResponse]":
    """Open a download for an `async with` block. Yield the response of the gateway, or of the store to which it redirects.

    `headers` include the token, which the store does not get. `timeout` applies to each of the two requests. Raise Unavailable if the store
    does not send the object. Its signed URL may have expired, so ask the gateway again. Raise Rejected if the redirect names no URL, or one
    without TLS on another machine.
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
