"""SCRAM-SHA-256 verifiers of Postgres: what a server keeps instead of a password, so that the password itself is never sent to it."""

import base64
import hashlib
import hmac
import secrets
from typing import Final

ITERATIONS: Final = 4_096
"""How often the password is hashed: what Postgres does itself, and clients do at each connection."""
SALT_BYTES: Final = 16


def verifier(password: str, salt: bytes | None = None) -> str:
    """Return the verifier of an ASCII password, as `alter role ... password` takes it (RFC 5803). The salt is drawn if none is given."""
    salt = salt or secrets.token_bytes(SALT_BYTES)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, ITERATIONS)
    stored = hashlib.sha256(_keyed(salted, b"Client Key")).digest()
    keys = ":".join(_text(key) for key in (stored, _keyed(salted, b"Server Key")))
    return f"SCRAM-SHA-256${ITERATIONS}:{_text(salt)}${keys}"


def _keyed(salted: bytes, what: bytes) -> bytes:
    return hmac.digest(salted, what, "sha256")


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
