"""The private keys with which this system signs tokens, and the public keys that verify them.

Users and services, pilots, and sites have a key each. So the key for pilots cannot sign users' tokens.
"""

import base64
import contextlib
import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from wms.auth.orders import ORDERS_KEY, SECRET_BYTES, read_secret
from wms.auth.principal import ISSUER, Kind
from wms.bounds import Name, Word
from wms.errors import Rejected

ALGORITHM: Final = "ES256"
PUBLIC_KEYS: Final = "jwks.json"
KINDS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "issuer.pem": ("user", "service"),
    "pilots.pem": ("pilot",),
    "sites.pem": ("site",),
}
"""The kinds of bearers for whom each key file may sign tokens, by file name."""


class PublicKey(msgspec.Struct, frozen=True, kw_only=True):
    """A public JSON Web Key (RFC 7517) that verifies tokens, with two members of this system's own.

    `wms_kinds` are the kinds of bearers for whom the key may sign tokens. `wms_issuer` names the issuer that has the private
    key.
    """

    kty: Word
    crv: Word
    x: Word
    y: Word
    kid: Name
    alg: Word
    use: Word = "sig"
    wms_kinds: Annotated[tuple[Kind, ...], msgspec.Meta(max_length=100)] = ()
    wms_issuer: Name = ISSUER


class KeySet(msgspec.Struct, frozen=True):
    """A JSON Web Key Set (RFC 7517): the content of `jwks.json`."""

    keys: Annotated[tuple[PublicKey, ...], msgspec.Meta(max_length=1_000)]


class SigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """A private key that signs tokens, its key id, and the kinds of bearers for whom it may sign."""

    kid: str
    kinds: tuple[Kind, ...]
    private: ec.EllipticCurvePrivateKey

    def __repr__(self) -> str:
        return f"SigningKey({self.kid!r}, {self.kinds!r})"


def generate_keys(directory: Path) -> None:
    """Create the missing private keys and secrets in a directory, readable by their owner alone. Write `jwks.json` with the public keys.

    It may be called again, also by two processes at once: an existing key is never replaced. Raise Rejected (KEY_EXPOSED or
    KEY_UNREADABLE) if an existing key cannot be used.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in KINDS:
        if not (directory / name).exists():
            _create(directory / name, _new_key())
    if not (directory / ORDERS_KEY).exists():
        _create(directory / ORDERS_KEY, secrets.token_hex(SECRET_BYTES).encode() + b"\n")
    keys = KeySet(tuple(_public(load_key(directory / name)) for name in KINDS))
    body = msgspec.json.format(msgspec.json.encode(keys), indent=1)
    beside = _write_beside(directory / PUBLIC_KEYS, body + b"\n", 0o644)
    beside.replace(directory / PUBLIC_KEYS)


def load_key(path: Path, kinds: tuple[Kind, ...] | None = None) -> SigningKey:
    """Read the private key in a PEM file. It may sign tokens for bearers of these `kinds`; None: those that KINDS has for the file's name.

    Raise Rejected if users other than the owner may read or write the file (KEY_EXPOSED), or if it has no usable P-256 key
    (KEY_UNREADABLE).
    """
    try:
        private = serialization.load_pem_private_key(read_secret(path, 65_536), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise Rejected("KEY_UNREADABLE", f"cannot read the key file {path}: {type(error).__name__}") from None
    if not isinstance(private, ec.EllipticCurvePrivateKey) or private.curve.name != "secp256r1":
        raise Rejected("KEY_UNREADABLE", f"the key in {path} is not an EC key on P-256")
    return SigningKey(kid=_name(private), kinds=kinds or KINDS.get(path.name, ()), private=private)


def _new_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _create(path: Path, body: bytes) -> None:
    beside = _write_beside(path, body, 0o600)
    # A link never replaces a file, unlike a rename: the second of two makers takes the key of the first.
    with contextlib.suppress(FileExistsError):
        path.hardlink_to(beside)
    beside.unlink()


def _write_beside(path: Path, body: bytes, mode: int) -> Path:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(descriptor)
    return beside


def _public(key: SigningKey) -> PublicKey:
    x, y = _coordinates(key.private)
    return PublicKey(kty="EC", crv="P-256", x=x, y=y, kid=key.kid, alg=ALGORITHM, wms_kinds=key.kinds)


def _coordinates(private: ec.EllipticCurvePrivateKey) -> tuple[str, str]:
    numbers = private.public_key().public_numbers()
    return _base64(numbers.x.to_bytes(32)), _base64(numbers.y.to_bytes(32))


def _name(private: ec.EllipticCurvePrivateKey) -> str:
    """Return the key id of a key: its thumbprint in base64 (RFC 7638)."""
    x, y = _coordinates(private)
    members = f'{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}'
    return _base64(hashlib.sha256(members.encode()).digest())


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
