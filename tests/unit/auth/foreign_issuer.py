"""An issuer of another system, with keys that it publishes and withdraws, at a time that tests set."""

import json
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.unit.auth.issuer import NOW
from wms.auth.trusted_issuer import IssuerRule, TrustedIssuer

URL = "https://iam.example.org/"
PRODUCTION = IssuerRule(groups=("/atlas/production",), vo="atlas", group="production")
MEMBERS = IssuerRule(groups=("/atlas",), vo="atlas", group="users")
TRUSTED = TrustedIssuer(url=URL, rules=(PRODUCTION, MEMBERS))

RSA_KEY = rsa.generate_private_key(65_537, 2_048)


class ForeignIssuer:
    def __init__(self, url: str = URL) -> None:
        self.url = url
        self.keys: dict[str, Any] = {"ec-1": ec.generate_private_key(ec.SECP256R1())}

    def jwks(self) -> bytes:
        return json.dumps({"keys": [published(kid, key) for kid, key in self.keys.items()]}).encode()

    def sign(self, kid: str = "ec-1", headers: dict[str, Any] | None = None, **changed: Any) -> str:
        """Sign a token of the WLCG profile with some claims changed, or left out where they are given as None."""
        body: dict[str, Any] = {
            "iss": self.url, "sub": "a1b2", "aud": "wms", "iat": int(NOW), "nbf": int(NOW), "exp": int(NOW) + 600,
            "jti": "t-1", "wlcg.ver": "1.0", "wlcg.groups": ["/atlas"], "scope": "openid",
        }  # fmt: skip
        body = {name: value for name, value in (body | changed).items() if value is not None}
        key = self.keys[kid]
        return jwt.encode(body, key, algorithm(key), headers={"kid": kid, **(headers or {})})


def algorithm(key: Any) -> str:
    return "RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256"


def published(kid: str, key: Any) -> dict[str, Any]:
    kind: Any = jwt.algorithms.RSAAlgorithm if algorithm(key) == "RS256" else jwt.algorithms.ECAlgorithm
    found: dict[str, Any] = kind.to_jwk(key.public_key(), as_dict=True)
    return {**found, "kid": kid, "alg": algorithm(key), "use": "sig", "x5t": "ignored"}
