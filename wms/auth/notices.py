"""Notices: messages between services, signed with a key that only services have.

A notice is accepted once and within a few minutes. So a writer to the broker without the key can neither forge nor replay one.
"""

import hmac
from collections.abc import Callable
from typing import Annotated, Final

import msgspec

from wms.auth.envelope import Envelopes, Macs, begin, is_among, mac
from wms.auth.orders import OrderKeys
from wms.errors import Rejected

NOTICE_SECONDS: Final = 300.0
"""The greatest age in seconds of an accepted notice, and the greatest tolerated difference between the clocks of two services."""
SEEN_LIMIT: Final = 200_000
"""The number of accepted notices that are remembered against replay. Above it, the older half is forgotten."""


class SignedNotice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The envelope of a notice: its authentication codes, its time and its content."""

    macs: Macs
    """The authentication codes over topic, time and notice."""
    at: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
    """Time of the signature in milliseconds since 1970."""
    notice: msgspec.Raw


_ENVELOPES: Final = Envelopes(SignedNotice, "NOTICE_FORGED")


class Notices:
    """Signer and verifier of notices; `now` returns the time in seconds since 1970."""

    def __init__(self, keys: OrderKeys, now: Callable[[], float]) -> None:
        self._keys = keys.of_services()
        self._now = now
        self._seen: set[bytes] = set()
        self._seen_before: set[bytes] = set()
        self._turned_at = 0.0

    def sign(self, topic: str, notice: bytes) -> bytes:
        """Return the signed form of a notice, a JSON document."""
        at = int(self._now() * 1_000)
        macs = b'","'.join([mac(each, notice) for each in self._begun(topic, at)])
        return b'{"macs":["%b"],"at":%d,"notice":%b}' % (macs, at, notice)

    def verified(self, topic: str, payload: bytes, limit: int) -> msgspec.Raw:
        """Return the verified notice in a signed message; the notice may have at most `limit` bytes.

        Raises:
            Rejected: NOTICE_FORGED if no service signed it; NOTICE_STALE if it is too old or was read before.
        """
        signed = _ENVELOPES.read(payload, limit)
        # The time is checked before the codes, so that old messages cost little.
        if abs(self._now() - signed.at / 1_000) > NOTICE_SECONDS:
            raise Rejected("NOTICE_STALE", "it is too old, or the clocks of the services differ")
        self._take(self._good(signed, topic))
        return signed.notice

    def authentic(self, topic: str, payload: bytes, limit: int) -> msgspec.Raw:
        """Return the notice in a signed message of any age, perhaps read before: for readers to whom it is a hint.

        Raises:
            Rejected: NOTICE_FORGED if no service signed it.
        """
        signed = _ENVELOPES.read(payload, limit)
        self._good(signed, topic)
        return signed.notice

    def _good(self, signed: SignedNotice, topic: str) -> bytes:
        """Return the valid code by the newest of the services' keys. Raise Rejected if no code is valid."""
        for each in self._begun(topic, signed.at):
            if is_among(good := mac(each, bytes(signed.notice)), signed.macs):
                return good
        raise _ENVELOPES.forged("no service has signed it")

    def _take(self, good: bytes) -> None:
        if good in self._seen or good in self._seen_before:
            raise Rejected("NOTICE_STALE", "it was read before")
        now = self._now()
        # A notice in neither set is too old by its time, unless very many were read.
        if now - self._turned_at > 2 * NOTICE_SECONDS or len(self._seen) >= SEEN_LIMIT:
            self._seen, self._seen_before, self._turned_at = set(), self._seen, now
        self._seen.add(good)

    def _begun(self, topic: str, at: int) -> list[hmac.HMAC]:
        return [begin(key, topic.encode(), b"%d" % at) for key in self._keys]
