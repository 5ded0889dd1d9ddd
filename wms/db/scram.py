"""SCRAM-SHA-256 verifiers of Postgres. The server stores a verifier instead of a password, so the password itself is never sent to it."""

import base64
import hashlib
import hmac
import secrets
from typing import Final

ITERATIONS: Final = 4_096
"""The number of hash iterations of a password, which is Postgres's default. Clients compute them at each connection."""
SALT_BYTES: Final = 16


def verifier(password: str, salt: bytes | None = None) -> str:
    """Return the verifier of an ASCII password, for use in `alter role ... password` (RFC 5803). None: a random salt."""
    salt = salt or secrets.token_bytes(SALT_BYTES)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, ITERATIONS)
    stored = hashlib.sha256(_keyed(salted, b"Client Key")).digest()
    keys = ":".join(_text(key) for key in (stored, _keyed(salted, b"Server Key")))
    return f"SCRAM-SHA-256${ITERATIONS}:{_text(salt)}${keys}"


def _keyed(salted: bytes, what: bytes) -> bytes:
    return hmac.digest(salted, what, "sha256")


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
