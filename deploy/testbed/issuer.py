"""An issuer of tokens for the testbed: tells over HTTPS who it is and by which key its tokens are verified.

`python -m deploy.testbed.issuer DIR PORT` serves what `Issuer.write` left in DIR. It answers requests whose line names the
whole URL, too, since that is how A-REX asks.
"""

import http.server
import json
import ssl
import sys
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from deploy.testbed.certificates import Credential

KEY_ID = "testbed"
SCOPES = "compute.read compute.create compute.modify compute.cancel"


class Issuer:
    """An issuer below a directory, on a port of this machine."""

    def __init__(self, place: Path, port: int) -> None:
        self.place = place
        self.port = port
        self.url = f"https://localhost:{port}/"
        self._key = rsa.generate_private_key(65537, 2048)

    def write(self, host: Credential) -> None:
        """Leave for the server what it serves and shows itself by."""
        self.place.mkdir(parents=True, exist_ok=True)
        self.place.chmod(0o700)
        (self.place / "host.pem").write_bytes(host.pem + host.key_pem)
        (self.place / "answers.json").write_text(json.dumps(self._answers()))

    def token(self, subject: str, audience: str, seconds: float = 7 * 86_400.0) -> str:
        """Return a token after the WLCG's profile that may do everything with jobs."""
        now = int(time.time())  # noqa: TID251 - the testbed stands apart from the system and its clock
        claims = {
            "iss": self.url,
            "sub": subject,
            "aud": audience,
            "wlcg.ver": "1.0",
            "scope": SCOPES,
            "iat": now,
            "nbf": now - 60,
            "exp": now + int(seconds),
            "jti": str(uuid.uuid4()),
        }
        return jwt.encode(claims, self._pem, algorithm="RS256", headers={"kid": KEY_ID})

    @property
    def _pem(self) -> bytes:
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def _answers(self) -> dict[str, Any]:
        key = json.loads(RSAAlgorithm.to_jwk(self._key.public_key()))
        return {
            "/.well-known/openid-configuration": {
                "issuer": self.url,
                "jwks_uri": f"{self.url}jwks",
                "token_endpoint": f"{self.url}token",
                "authorization_endpoint": f"{self.url}authorize",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            },
            "/jwks": {"keys": [{**key, "kid": KEY_ID, "use": "sig", "alg": "RS256"}]},
        }


class _Handler(http.server.BaseHTTPRequestHandler):
    answers: dict[str, Any]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = "/" + urlsplit(self.path).path.lstrip("/")
        body = json.dumps(self.answers.get(path, {})).encode()
        self.send_response(200 if path in self.answers else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(place: Path, port: int) -> None:
    """Serve until told to end."""
    _Handler.answers = json.loads((place / "answers.json").read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place / "host.pem")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
