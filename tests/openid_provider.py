"""A real OpenID provider for tests: npm's `oidc-provider`, installed once into a cache by its lock file, run as a process."""

import base64
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from yarl import URL

from tests.waiting import eventually
from wms.embedded.process import free_port

FILES = Path(__file__).parent / "data" / "oidc"
INSTALL_SECONDS = 240
RESOURCE = "urn:wms"
PAGES = 10
FORM = re.compile(r"<form.*?</form>", re.DOTALL)
ACTION = re.compile(r'action="([^"]*)"')
FIELD = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)"')


class OpenIdProvider:
    """A provider at one address, which may be stopped and started again with other keys."""

    def __init__(self, directory: Path, ttl: int = 600) -> None:
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        self.groups: dict[str, list[str]] = {"robot": ["/atlas"], "alice": ["/atlas", "/atlas/production"]}
        self.ttl = ttl
        self._directory = directory
        self._library = installed()
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self, *keys: dict[str, Any]) -> None:
        """Start it with these private keys, of which it signs with the first; wait until it answers."""
        settings = {
            "issuer": self.issuer,
            "port": self.port,
            "jwks": {"keys": keys},
            "groups": self.groups,
            "ttl": self.ttl,
            "library": str(self._library),
        }
        file = self._directory / "provider.json"
        file.write_text(json.dumps(settings))
        log = (self._directory / "provider.log").open("ab")
        self._process = subprocess.Popen(["node", FILES / "provider.mjs", file], stdout=log, stderr=log)
        await eventually(self._answers, 60)

    def stop(self) -> None:
        """End it; nothing answers at its address then."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def token(self, scope: str = "") -> str:
        """Return an access token of the robot, a client with a secret."""
        form = {
            "grant_type": "client_credentials",
            "client_id": "robot",
            "client_secret": "a secret of tests",
            "resource": RESOURCE,
            **({"scope": scope} if scope else {}),
        }
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.issuer}/token", data=form) as answer,
        ):
            said = await answer.json()
            assert answer.status == 200, said
            return str(said["access_token"])

    async def confirm(self, url: str, name: str) -> None:
        """Confirm a code as a user in a browser does: follow the pages, log in by a name, and agree to everything."""
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            method, form = "GET", dict[str, str]()
            for _ in range(PAGES):
                async with browser.request(method, url, data=form or None) as answer:
                    assert answer.status == 200, url
                    page, at = await answer.text(), answer.url
                if (found := FORM.search(page)) is None:
                    return
                action = ACTION.search(found[0])
                method, url = "POST", str(at.join(URL(html.unescape(action[1])))) if action else str(at)
                form = {key: html.unescape(value) for key, value in FIELD.findall(found[0])}
                form |= {"login": name, "password": "any"} if 'name="login"' in found[0] else {}
        raise AssertionError("the pages of the provider do not end")

    async def _answers(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError((self._directory / "provider.log").read_text())
        url = f"{self.issuer}/.well-known/openid-configuration"
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False


def installed() -> Path:
    """Return the provider's main file, installed by its lock file; skip the test where that cannot be."""
    if lack := next((each for each in ("node", "npm") if shutil.which(each) is None), ""):
        pytest.skip(f"OPENID PROVIDER NOT TESTED: this machine lacks {lack}")
    place = _cache() / f"oidc-{hashlib.sha256((FILES / 'package-lock.json').read_bytes()).hexdigest()[:16]}"
    if not place.exists():
        _install(place)
    return place / "node_modules" / "oidc-provider" / "lib" / "index.js"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wms-tests"


def _install(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as beside:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(FILES / name, beside)
        done = subprocess.run(
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=beside, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False,
        )  # fmt: skip
        if done.returncode:
            pytest.skip(f"OPENID PROVIDER NOT TESTED: npm could not install it: {done.stderr[-500:]}")
        try:
            Path(beside).rename(place)
        except OSError:  # another process was faster
            return
        Path(beside).mkdir()


def ec_key(kid: str) -> dict[str, Any]:
    """Return a new private key on P-256 as a JSON Web Key."""
    private = ec.generate_private_key(ec.SECP256R1()).private_numbers()
    public = private.public_numbers
    x, y, d = (_base64(each.to_bytes(32)) for each in (public.x, public.y, private.private_value))
    return {"kty": "EC", "crv": "P-256", "x": x, "y": y, "d": d, "kid": kid, "alg": "ES256", "use": "sig"}


def rsa_key(kid: str) -> dict[str, Any]:
    """Return a new private RSA key as a JSON Web Key."""
    private = rsa.generate_private_key(65_537, 2_048).private_numbers()
    named = {
        "n": private.public_numbers.n, "e": private.public_numbers.e, "d": private.d, "p": private.p, "q": private.q,
        "dp": private.dmp1, "dq": private.dmq1, "qi": private.iqmp,
    }  # fmt: skip
    numbers = {name: _base64(each.to_bytes((each.bit_length() + 7) // 8)) for name, each in named.items()}
    return {"kty": "RSA", **numbers, "kid": kid, "alg": "RS256", "use": "sig"}


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
