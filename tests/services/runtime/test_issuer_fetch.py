"""Keys of issuers, fetched from a real provider, and from servers that mean no good."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from aiohttp import web

from tests.openid_provider import OpenIdProvider, ec_key, rsa_key
from tests.unit.auth.issuer import Issuer, code
from tests.web_server import web_server
from wms.auth.issuer_keys import AGAIN_SECONDS, IssuerKeys
from wms.auth.token import Verifier
from wms.auth.trusted_issuer import IssuerRule, TrustedIssuer
from wms.errors import Rejected, Unavailable
from wms.runtime import clock, issuer_fetch
from wms.runtime.issuer_fetch import DISCOVERY_BYTES, IssuerFetch, fetch_keys

RULES = (IssuerRule(groups=("/atlas",), vo="atlas", group="users"),)


class Trusting:
    """A verifier that trusts an issuer, and the fetching beside it, at a time that the test moves."""

    def __init__(self, directory: Path, url: str) -> None:
        self.issuer = TrustedIssuer(url=url, rules=RULES)
        self.keys = IssuerKeys((self.issuer,))
        self.verifier = Verifier.from_file(Issuer(directory).jwks, self.keys)
        self.ahead = 0.0
        self.fetch = IssuerFetch(self.keys, self.now)

    def now(self) -> float:
        return clock.timestamp() + self.ahead

    def owner(self, token: str) -> str:
        return self.verifier.verify(token, clock.timestamp()).owner

    def code(self, token: str) -> str:
        return code(lambda: self.verifier.verify(token, clock.timestamp()))

    @property
    def trouble(self) -> str:
        return str(self.keys.health(self.now())[self.issuer.url]["trouble"])


async def test_tokens_of_a_real_provider_are_good_over_rotation_outage_and_withdrawal(
    provider: OpenIdProvider, tmp_path: Path
) -> None:
    first, second = ec_key("first"), rsa_key("second")
    trusting = Trusting(tmp_path / "keys", provider.issuer)
    await provider.start(first)
    token = await provider.token()
    assert trusting.code(token) == "TOKEN_KEY_UNKNOWN"
    await trusting.fetch.look()
    assert trusting.owner(token) == f"{provider.issuer}#robot"

    # It rotates: the new key signs, the old one is still published. A token brings the look forward.
    provider.stop()
    await provider.start(second, first)
    rotated = await provider.token()
    assert trusting.code(rotated) == "TOKEN_KEY_UNKNOWN"
    trusting.ahead = AGAIN_SECONDS
    await trusting.fetch.look()
    assert trusting.owner(rotated) == trusting.owner(token)

    # It is away for an hour, and its tokens stay good.
    provider.stop()
    trusting.ahead += 3_600
    await trusting.fetch.look()
    assert "Cannot connect" in trusting.trouble
    assert trusting.owner(rotated) == trusting.owner(token)

    # It is back and has withdrawn the old key.
    await provider.start(second)
    trusting.ahead += 60
    await trusting.fetch.look()
    assert trusting.trouble == ""
    assert trusting.code(token) == "TOKEN_KEY_WITHDRAWN"
    assert trusting.owner(rotated) == f"{provider.issuer}#robot"


async def test_a_capability_of_a_real_token_limits_it(provider: OpenIdProvider, tmp_path: Path) -> None:
    trusting = Trusting(tmp_path / "keys", provider.issuer)
    await provider.start(rsa_key("only"))
    await trusting.fetch.look()
    reader = trusting.verifier.verify(await provider.token("compute.read"), clock.timestamp())
    assert reader.actions == frozenset({"see", "see_detail", "fetch_output"})


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(documents: dict[str, str | Handler]) -> AsyncIterator[TrustedIssuer]:
    """Serve documents, in which ISSUER stands for the server's address."""
    app = web.Application()
    url = ""

    async def serve(request: web.Request) -> web.StreamResponse:
        found = documents.get(request.path)
        if found is None:
            raise web.HTTPNotFound
        return (
            web.Response(text=found.replace("ISSUER", url))
            if isinstance(found, str)
            else await found(request)
        )

    app.router.add_get("/{path:.*}", serve)
    async with web_server(app) as port:
        url = f"http://127.0.0.1:{port}"
        yield TrustedIssuer(url=url, rules=RULES)


DISCOVERY = "/.well-known/openid-configuration"
GOOD = '{"issuer":"ISSUER","jwks_uri":"ISSUER/jwks"}'


async def elsewhere(request: web.Request) -> web.StreamResponse:
    raise web.HTTPFound("/jwks-of-another")


@pytest.mark.parametrize(
    ("documents", "why"),
    [
        ({}, "answers 404"),
        ({DISCOVERY: "[]"}, "is no discovery document"),
        ({DISCOVERY: '{"issuer":"ISSUER/","jwks_uri":"ISSUER/jwks"}'}, "is the document of"),
        ({DISCOVERY: '{"issuer":"ISSUER","jwks_uri":"https://10.0.0.1/jwks"}'}, "another host"),
        ({DISCOVERY: '{"issuer":"ISSUER","jwks_uri":"file:///etc/passwd"}'}, "must name a host"),
        ({DISCOVERY: " " * (DISCOVERY_BYTES + 1)}, "bytes"),
        ({DISCOVERY: elsewhere, "/jwks-of-another": GOOD}, "answers 302"),
        ({DISCOVERY: GOOD, "/jwks": elsewhere, "/jwks-of-another": '{"keys":[]}'}, "answers 302"),
    ],
)
async def test_what_is_no_issuer_is_refused(documents: dict[str, str | Handler], why: str) -> None:
    async with served(documents) as issuer:
        with pytest.raises((Rejected, Unavailable), match=why):
            await fetch_keys(issuer)


async def test_a_server_that_never_ends_holds_up_no_other_issuer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_fetch, "FETCH_SECONDS", 3.0)

    async def endless(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    jwks = '{"keys":[' + msgspec.json.encode(ec_key("k")).decode() + "]}"
    async with served({DISCOVERY: endless}) as slow, served({DISCOVERY: GOOD, "/jwks": jwks}) as good:
        keys = IssuerKeys((slow, good))
        await IssuerFetch(keys, clock.timestamp).look()
        health = keys.health(clock.timestamp())
        assert health[good.url]["keys"] == 1
        assert "3 s" in health[slow.url]["trouble"]
