"""A decoder for topics that only services write. A message without a service's signature is refused before it is decoded."""

from typing import Any, TypeVar

from wms.auth.service_signatures import ServiceSignatures
from wms.messages.wire import PAYLOAD_LIMIT, Codec

M = TypeVar("M")


class SignedCodec(Codec[M]):
    """Decodes the signed messages between services on one topic. `union` is the type of the messages.

    With `again` it also accepts messages that are old or were accepted before.
    """

    def __init__(self, union: Any, topic: str, notices: ServiceSignatures, *, again: bool = False) -> None:
        super().__init__(union)
        self._topic = topic
        self._verified = notices.authentic if again else notices.verified

    def decode(self, payload: bytes) -> M:
        """Verify and decode a message. Raise Rejected if it is unsigned or cannot be decoded.

        Without `again`, raise it also if the message is too old or was seen before.
        """
        return super().decode(bytes(self._verified(self._topic, payload, PAYLOAD_LIMIT)))
