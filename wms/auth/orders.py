"""Keys of pilots: services sign their orders (messages to a pilot) with the pilot's key. Its job agent obeys signed orders only.

A pilot's key is HMAC-SHA256(secret of the services, pilot id), so that no table of keys is needed. The key travels beside the
pilot's token and signs only orders to that pilot. Two secrets may be in use at a time. The older one serves pilots that were
sent before the newer one existed, until the last of them has ended.
"""

import base64
import hmac
import os
import secrets
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from wms.auth.envelope import SECRETS_LIMIT, Envelopes, Macs, begin, is_among, mac
from wms.auth.pilot_secret import PilotSecret
from wms.errors import Rejected

ORDERS_KEY: Final = "orders.key"
"""The name of the file with the services' secrets: one a line in hexadecimal digits, the newest first."""
SECRET_BYTES: Final = 32
_NONCE_BYTES = 12
_SERVICES = "\0services"
"""The text, in place of a pilot id, from which the key for messages between services is derived. No pilot has this id."""
_EXCHANGE = "\0exchange\0"
"""The prefix of the pilot id in the text from which the pilot's one-time secret is derived. No pilot's id begins with it."""
_FILE_LIMIT = 4_096
PILOTS_KEPT: Final = 16_384
"""The most pilots whose keys and partly computed HMACs are cached, about 1 KiB each. Beyond it the least recently used are dropped."""


def read_secret(path: Path, limit: int) -> bytes:
    """Return the content of a secret file, cut to at most `limit` bytes. Raise OSError if it cannot be read.

    Raise Rejected (KEY_EXPOSED) if users other than the owner may read, write or execute the file.
    """
    with path.open("rb") as file:
        # The open file is checked, so that it cannot be replaced between check and use.
        if (mode := os.fstat(file.fileno()).st_mode) & 0o077:
            raise Rejected(
                "KEY_EXPOSED",
                f"others may use the key file {path}",
                f"chmod 600; it has {mode & 0o777:o}",
            )
        return file.read(limit)


class SignedOrder(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A signed order as it is sent in the inbox of the pilot's site (the Kafka topic for all pilots there).

    It has the order, and the authentication codes that prove that a service sent it.
    """

    macs: Macs
    """The authentication codes over topic, message key and order: one for each key that the pilot may have, the newest first."""
    order: msgspec.Raw


_ENVELOPES: Final = Envelopes(SignedOrder, "ORDER_FORGED")


class OrderKeys:
    """Signs and encrypts messages to pilots with keys that are derived from the services' secrets.

    `secrets_` are one or two secrets of 32 bytes, the newest first. Raise Rejected (KEY_UNREADABLE) for anything else.
    """

    def __init__(self, secrets_: Sequence[bytes]) -> None:
        if not 1 <= len(secrets_) <= SECRETS_LIMIT or any(len(each) != SECRET_BYTES for each in secrets_):
            raise Rejected(
                "KEY_UNREADABLE",
                f"orders are signed with one or {SECRETS_LIMIT} secrets of {SECRET_BYTES} bytes each",
            )
        self._secrets = tuple(secrets_)
        self._of_pilot = lru_cache(PILOTS_KEPT)(self._derived)
        self._begun = lru_cache(PILOTS_KEPT)(self._begin)
        self._tickets = [begin(each, b"ticket") for each in self._secrets]

    @classmethod
    def from_file(cls, path: Path) -> "OrderKeys":
        """Read the services' secrets from a file with one secret a line, in hexadecimal digits, the newest first.

        Raise Rejected if users other than the owner may read or write the file (KEY_EXPOSED). Raise Rejected if it cannot be
        read or does not have one or two secrets of 32 bytes (KEY_UNREADABLE).
        """
        try:
            lines = read_secret(path, _FILE_LIMIT).split()
            return cls([bytes.fromhex(line.decode("ascii")) for line in lines])
        except (OSError, ValueError) as error:
            raise Rejected(
                "KEY_UNREADABLE", f"cannot read the key file {path}: {type(error).__name__}"
            ) from None

    def of_pilot(self, pilot_id: str) -> str:
        """Return the key of a pilot, in hexadecimal digits, derived from the newest of the services' secrets."""
        return self._of_pilot(pilot_id)[0].hex()

    def secrets_of(self, pilot_id: str) -> tuple[PilotSecret, ...]:
        """Return the one-time secrets that a pilot may have been sent with: one for each of the services' secrets, the newest first."""
        return tuple(PilotSecret(pilot_id, each) for each in self._derived(_EXCHANGE + pilot_id))

    def derived_of_pilot(self, pilot_id: str, name: bytes) -> tuple[bytes, ...]:
        """Return the keys for another use, called `name`, of a pilot: one for each key that the pilot may have, the newest first.

        One of them is the result of `PilotKey.derived` in the pilot itself.
        """
        return tuple(_named(each, name) for each in self._of_pilot(pilot_id))

    def of_services(self) -> tuple[bytes, ...]:
        """Return the keys with which services sign messages to each other, the newest first."""
        return self._derived(_SERVICES)

    def sign(self, topic: str, key: bytes, order: bytes) -> bytes:
        """Return the signed form of `order`, a JSON document, to be sent on this Kafka topic.

        `key` is the message key: the id of the pilot for which the order is signed.
        """
        macs = b'","'.join([mac(each, order) for each in self._begun(topic, key)])
        return b'{"macs":["%b"],"order":%b}' % (macs, order)

    def seal(self, pilot_id: str, text: str) -> tuple[str, ...]:
        """Return `text` encrypted (AES-GCM) for one pilot, once for each key that the pilot may have. `PilotKey.opened` decrypts it."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = (
            AESGCM(each).encrypt(nonce, text.encode(), pilot_id.encode()) for each in self._of_pilot(pilot_id)
        )
        return tuple(base64.b64encode(nonce + each).decode() for each in sealed)

    def ticket(self, *parts: str | int) -> str:
        """Return a ticket: an authentication code that proves that a service put together exactly these values.

        Others may pass the ticket on, but cannot make one. It has no time limit.
        """
        return mac(self._tickets[0], msgspec.json.encode(parts)).decode()

    def is_ticket(self, ticket: str, *parts: str | int) -> bool:
        """Return whether `ticket` is the result of `OrderKeys.ticket` for these values, by one of the services' secrets."""
        words, given = msgspec.json.encode(parts), ticket.encode()
        return any(hmac.compare_digest(mac(each, words), given) for each in self._tickets)

    def _begin(self, topic: str, key: bytes) -> tuple[hmac.HMAC, ...]:
        return tuple(begin(each, topic.encode(), key) for each in self._of_pilot(key.decode()))

    def _derived(self, pilot_id: str) -> tuple[bytes, ...]:
        return tuple(hmac.digest(each, pilot_id.encode(), "sha256") for each in self._secrets)


class PilotKey:
    """The key of one pilot, with which its job agent verifies and decrypts what services send to it."""

    def __init__(self, pilot_id: str, text: str) -> None:
        """Take the key of the pilot `pilot_id` as hexadecimal digits. Raise Rejected (KEY_UNREADABLE) if `text` is not 32 bytes in them."""
        try:
            self._key = bytes.fromhex(text)
        except ValueError:
            self._key = b""
        if len(self._key) != SECRET_BYTES:
            raise Rejected("KEY_UNREADABLE", "the pilot's key is no key", "send a new pilot")
        self._pilot_id = pilot_id

    @property
    def pilot_id(self) -> str:
        """The id of the pilot that has the key."""
        return self._pilot_id

    def derived(self, name: bytes) -> bytes:
        """Return a key for the use called `name`, derived from this one by HMAC-SHA256. It does not reveal this key.

        `name` must have no NUL byte.
        """
        return _named(self._key, name)

    def __repr__(self) -> str:
        return f"PilotKey({self._pilot_id!r})"

    def verified(self, topic: str, payload: bytes, limit: int) -> msgspec.Raw:
        """Return the order in a signed message that came on this topic. The order may have at most `limit` bytes.

        Raise Rejected (ORDER_FORGED) if the message is too large or not signed for this pilot and topic.
        """
        signed = _ENVELOPES.read(payload, limit)
        begun = begin(self._key, topic.encode(), self._pilot_id.encode())
        if not is_among(mac(begun, bytes(signed.order)), signed.macs):
            raise _ENVELOPES.forged("it is signed with another key, or for somebody else")
        return signed.order

    def opened(self, sealed: Sequence[str]) -> str:
        """Return the text that `OrderKeys.seal` encrypted for this pilot. `sealed` are its encrypted forms, one for each key.

        Raise Rejected (SEAL_BROKEN) if this pilot's key decrypts none of the first two.
        """
        # Imported here: it takes long, and a pilot without renewals does not need it.
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        for each in sealed[:SECRETS_LIMIT]:
            try:
                content = base64.b64decode(each, validate=True)
                nonce, text = content[:_NONCE_BYTES], content[_NONCE_BYTES:]
                return AESGCM(self._key).decrypt(nonce, text, self._pilot_id.encode()).decode()
            except (InvalidTag, ValueError):
                continue
        raise Rejected("SEAL_BROKEN", "it was sealed for somebody else")


class PilotCredential(msgspec.Struct, frozen=True):
    """The secrets of one pilot: its token, and the key in hexadecimal digits with which it verifies orders."""

    token: str
    key: str

    def __repr__(self) -> str:
        return "PilotCredential(...)"

    @property
    def text(self) -> str:
        """The content of the file in which the pilot gets its credential: token and key, each on a line."""
        return f"{self.token}\n{self.key}\n"

    @classmethod
    def parse(cls, text: str) -> "PilotCredential":
        """Read the content of a credential's file: a token and a key, separated by white space.

        Raise Rejected (NO_TOKEN) if it is anything else. The two are not verified.
        """
        match text.split():
            case [token, key]:
                return cls(token, key)
        raise Rejected("NO_TOKEN", "the pilot's credential is not a token and a key", "send a new pilot")


def _named(key: bytes, name: bytes) -> bytes:
    # What is signed with the key itself begins with a topic and a NUL byte, so that the two are never the same.
    return hmac.digest(key, name, "sha256")


def claimed_end(token: str) -> float:
    """Return when a token expires, in seconds since 1970, without verifying it; 0 if the text is no token."""
    try:
        payload = token.split(".")[1]
        claims = msgspec.json.decode(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)), type=_End)
    except (IndexError, ValueError, msgspec.DecodeError):
        return 0.0
    return claims.exp


class _End(msgspec.Struct, frozen=True):
    exp: float
