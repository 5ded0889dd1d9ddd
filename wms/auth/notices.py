"""Notices: messages between services, signed with a key that only services have.

A notice is accepted once and within a few minutes. So whoever can write to Kafka without the key can neither forge nor replay one.
"""

import hmac
from collections.abc import Callable
from typing import Annotated, Final

import msgspec

from wms.auth.envelope import Envelopes, Macs, begin, is_among, mac
from wms.auth.orders import OrderKeys
from wms.errors import Rejected

NOTICE_SECONDS: Final = 300.0
"""How old a notice may be, in seconds, and how much the clocks of two services may differ."""
SEEN_LIMIT: Final = 200_000
"""How many accepted notices are remembered, so that none is accepted twice. Beyond, the older half is forgotten."""


class SignedNotice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message between services with its signature: authentication codes, time and content."""

    macs: Macs
    """The authentication codes over topic, time and content."""
    at: Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
    """When the notice was signed, in milliseconds since 1970."""
    notice: msgspec.Raw


_ENVELOPES: Final = Envelopes(SignedNotice, "NOTICE_FORGED")


class Notices:
    """Signs and verifies notices, the messages between services. `now` is a function that returns the time in seconds since 1970."""

    def __init__(self, keys: OrderKeys, now: Callable[[], float]) -> None:
        self._keys = keys.of_services()
        self._now = now
        self._seen: set[bytes] = set()
        self._seen_before: set[bytes] = set()
        self._turned_at = 0.0

    def sign(self, topic: str, notice: bytes) -> bytes:
        """Return the message to send on this topic: `notice`, a JSON document, with its signature."""
        at = int(self._now() * 1_000)
        macs = b'","'.join([mac(each, notice) for each in self._begun(topic, at)])
        return b'{"macs":["%b"],"at":%d,"notice":%b}' % (macs, at, notice)

    def verified(self, topic: str, payload: bytes, limit: int) -> msgspec.Raw:
        """Return the content of a signed message on this topic, once for each message. It may have at most `limit` bytes.

        Raise Rejected if no service signed the message (NOTICE_FORGED), or if it is too old or was verified before
        (NOTICE_STALE).
        """
        signed = _ENVELOPES.read(payload, limit)
        # The time is checked before the codes, so that old messages cost little.
        if abs(self._now() - signed.at / 1_000) > NOTICE_SECONDS:
            raise Rejected("NOTICE_STALE", "it is too old, or the clocks of the services differ")
        self._take(self._good(signed, topic))
        return signed.notice

    def authentic(self, topic: str, payload: bytes, limit: int) -> msgspec.Raw:
        """Return the content of a signed message on this topic, of any age and as often as asked.

        It may have at most `limit` bytes. Raise Rejected (NOTICE_FORGED) if no service signed the message.
        """
        signed = _ENVELOPES.read(payload, limit)
        self._good(signed, topic)
        return signed.notice

    def _good(self, signed: SignedNotice, topic: str) -> bytes:
        """Return the code by one of the services' keys that the notice has, of the newest if it has several. Raise Rejected if it has none."""
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
