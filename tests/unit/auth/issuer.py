"""An issuer of tokens at a time that tests set."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest

from wms.auth.keys import KINDS, generate_keys, load_key
from wms.auth.token import Claims, Right, Verifier, mint
from wms.errors import Rejected

NOW = 1_800_000_000.0


ALICE = Claims(kind="user", owner="alice", group="higgs", vo="atlas", rights=frozenset({Right.JOB_MONITOR}))


class Issuer:
    def __init__(self, directory: Path) -> None:
        generate_keys(directory)
        self.directory = directory
        self.keys = {name.removesuffix(".pem"): load_key(directory / name) for name in KINDS}
        self.jwks = directory / "jwks.json"

    def verifier(self) -> Verifier:
        return Verifier.from_file(self.jwks)

    def mint(self, claims: Claims = ALICE, lifetime: float = 600, key: str = "issuer") -> str:
        return mint(self.keys[key], claims, lifetime, NOW)

    def sign(self, key: str = "issuer", headers: dict[str, Any] | None = None, **changed: Any) -> str:
        """Sign a body of alice's with some claims changed, or left out where they are given as None."""
        body = jwt.decode(self.mint(), options={"verify_signature": False}) | changed
        body = {name: value for name, value in body.items() if value is not None}
        signer = self.keys[key]
        return jwt.encode(body, signer.private, "ES256", headers={"kid": signer.kid, **(headers or {})})


def code(verify: Callable[[], object]) -> str:
    with pytest.raises(Rejected) as fault:
        verify()
    return fault.value.code
