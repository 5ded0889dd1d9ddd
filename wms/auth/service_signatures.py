"""Notices: messages that services send each other over Kafka, signed with a key that only services have.

A notice is accepted once, and only within NOTICE_SECONDS of its signing. So somebody who can write to Kafka without the key
can neither forge nor replay one.
"""

import hmac
from collections.abc import Callable
from typing import Annotated, Final

import msgspec

from wms.auth.envelope import Envelopes, Macs, begin, is_among, mac
from wms.auth.orders import OrderKeys
from wms.errors import Rejected

NOTICE_SECONDS: Final = 300.0
"""The largest difference, in seconds, between the time in a notice and the receiver's clock. Beyond it the notice is refused.

It bounds the age of notices, and how far the clocks of two services may differ.
"""
SEEN_LIMIT: Final = 200_000
"""The most accepted notices in the newer of the two sets that are remembered against replay.

When that set is full or old, it becomes the older set, and the previous older set is forgotten.
"""


class SignedNotice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The signed form of a notice, as it is sent over Kafka: authentication codes, time and content."""

    macs: Macs
    """The authentication codes over topic, time and content."""
    at: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
    """When the notice was signed, in milliseconds since 1970."""
    notice: msgspec.Raw


_ENVELOPES: Final = Envelopes(SignedNotice, "NOTICE_FORGED")


class ServiceSignatures:
    """Signs and verifies notices, the messages between services. `keys` has the services' secrets.

    `now` is a function that returns the time in seconds since 1970.
    """

    def __init__(self, keys: OrderKeys, now: Callable[[], float]) -> None:
        self._keys = keys.of_services()
        self._now = now
        self._seen: set[bytes] = set()
        self._seen_before: set[bytes] = set()
        self._turned_at = 0.0

    def sign(self, topic: str, notice: bytes) -> bytes:
        """Return the signed form of `notice`, a JSON document, to be sent on this Kafka topic."""
        at = int(self._now() * 1_000)
        macs = b'","'.join([mac(each, notice) for each in self._begun(topic, at)])
        return b'{"macs":["%b"],"at":%d,"notice":%b}' % (macs, at, notice)

    def verified(self, topic: str, payload: bytes, limit: int) -> msgspec.Raw:
        """Return the content of a signed notice that came on this topic. Each notice is accepted once.

        The content may have at most `limit` bytes. Raise Rejected if the message is too large or no service signed it for
        this topic (NOTICE_FORGED). Raise Rejected if its time is more than NOTICE_SECONDS from now, or if it was accepted
        before (NOTICE_STALE).
        """
        signed = _ENVELOPES.read(payload, limit)
        # The time is checked before the codes, so that old messages cost little.
        if abs(self._now() - signed.at / 1_000) > NOTICE_SECONDS:
            raise Rejected("NOTICE_STALE", "it is too old, or the clocks of the services differ")
        self._take(self._good(signed, topic))
        return signed.notice

    def authentic(self, topic: str, payload: bytes, limit: int) -> msgspec.Raw:
        """Return the content of a signed notice that came on this topic, whatever its age, and also if it was accepted before.

        The content may have at most `limit` bytes. Raise Rejected (NOTICE_FORGED) if it is larger, or if no service signed
        the message for this topic.
        """
        signed = _ENVELOPES.read(payload, limit)
        self._good(signed, topic)
        return signed.notice

    def _good(self, signed: SignedNotice, topic: str) -> bytes:
        """Return the right authentication code of a notice by the newest of the services' keys with which it is signed.

        Raise Rejected (NOTICE_FORGED) if it is signed with none of these keys.
        """
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
