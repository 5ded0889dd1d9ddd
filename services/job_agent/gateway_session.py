"""The HTTP client of a pilot for its gateway, and the translation of the client's errors.

Only the node connects, never the gateway. The proxies that the environment names are used. The client keeps no cookies and expands no
compressed answers, because a small one could become very large.
"""

import ssl

import aiohttp

from wms.errors import Rejected, Unavailable

FAILURES = (aiohttp.ClientError, OSError, TimeoutError)
"""The errors of a request that was not answered in full. `unanswered` translates them."""


def gateway_session(
    authorities: str, connections: int, timeout: aiohttp.ClientTimeout | None = None
) -> aiohttp.ClientSession:
    """Return a session, not connected yet, which has at most so many `connections` at a time.

    `authorities` are the certificates of trusted authorities, in PEM; empty: those that the node trusts. `timeout` has the time limits of
    requests that set none; None: those of aiohttp. Raise Rejected (BAD_AUTHORITIES) if the certificates cannot be read.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, ssl=_trusted(authorities)),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        headers={"Accept-Encoding": "identity"},
        timeout=timeout or aiohttp.ClientTimeout(),
        # HTTPS_PROXY, NO_PROXY
        trust_env=True,
    )


def bearer(token: str) -> dict[str, str]:
    """Return the HTTP header with a token; empty for an empty token."""
    return {"Authorization": f"Bearer {token}"} if token else {}


def unanswered(what: str, error: Exception) -> Unavailable:
    """Return the error for a request that was not answered. `what` says what did not happen, `error` is one of FAILURES."""
    return Unavailable(f"{what}: {str(error) or type(error).__name__}")


def _trusted(authorities: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=authorities or None)
    except (ValueError, ssl.SSLError) as error:
        raise Rejected(
            "BAD_AUTHORITIES", f"the authorities of the gateway are no certificates: {error}"
        ) from None
