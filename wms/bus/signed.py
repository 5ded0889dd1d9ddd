"""A codec for topics that only services write. A message without a service's signature is refused before it is decoded."""

from typing import Any, TypeVar

from wms.auth.notices import Notices
from wms.messages.wire import PAYLOAD_LIMIT, Codec

M = TypeVar("M")


class SignedCodec(Codec[M]):
    """A decoder of the notices on one topic; with `again` it accepts old ones, and the same ones again, as hints."""

    def __init__(self, union: Any, topic: str, notices: Notices, *, again: bool = False) -> None:
        super().__init__(union)
        self._topic = topic
        self._verified = notices.authentic if again else notices.verified

    def decode(self, payload: bytes) -> M:
        """Return the message. Raise Rejected if it is unsigned, replayed, or refused by `Codec`."""
        return super().decode(bytes(self._verified(self._topic, payload, PAYLOAD_LIMIT)))
