"""`POST /pilots/{pilot_id}/messages`: what a pilot says, passed on under its token, so that the services check it as ever."""

from collections.abc import Sequence
from typing import Annotated, Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway import received
from services.gateway.asking import Desk, json_response
from services.gateway.operation import Operation
from services.gateway.place_routes import OnePilot
from wms.bus.kafka import HEADER
from wms.errors import Rejected
from wms.messages import reports, requests
from wms.messages.reports import Peeked, Report
from wms.messages.requests import MatchRequest
from wms.messages.wire import PAYLOAD_LIMIT, Codec

MESSAGES_LIMIT: Final = 100
BODY_LIMIT: Final = PAYLOAD_LIMIT + 10_000


class PilotMessageBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Messages of one pilot, in their order: match requests, reports, and parts of payloads' output."""

    messages: Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(min_length=1, max_length=MESSAGES_LIMIT)]
    """Each as the pilot would send it to the topics `wms.match.requests` and `wms.job.reports`."""


class TakenMessages(msgspec.Struct, frozen=True, kw_only=True):
    """The messages are stored for the services."""

    taken: int


MESSAGES: Final = Operation(
    method="POST",
    path="/pilots/{pilot_id}/messages",
    summary="Send your pilot's match requests, reports and parts of output; the answers come with its orders",
    parameters=OnePilot,
    body=PilotMessageBatch,
    answer=TakenMessages,
    status=202,
)
_CODEC: Final[Codec[MatchRequest | Report | Peeked]] = Codec(MatchRequest | Report | Peeked)


class PilotMessages:
    """The endpoint."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def respond(self, request: Request) -> Response:
        """Send the messages in their order, and return once Kafka has stored them."""
        given = received.parameters(request, OnePilot)
        credential, principal = self._desk.admit_pilot(request, given.pilot_id)
        seconds = self._desk.settings.read_seconds
        batch: PilotMessageBatch = await received.decoded(request, PilotMessageBatch, BODY_LIMIT, seconds)
        payloads = [bytes(each) for each in batch.messages]
        for topic, some in _by_topic(payloads, given.pilot_id).items():
            keys = [given.pilot_id.encode()] * len(some)
            headers = [(HEADER, f"Bearer {credential.token}".encode())]
            await self._desk.pilots.kafka.send_many(topic, keys, some, headers)
        self._desk.pilots.inboxes.hurry(principal.site or "")
        return json_response(TakenMessages(taken=len(payloads)), MESSAGES.status)


def _by_topic(payloads: Sequence[bytes], pilot_id: str) -> dict[str, list[bytes]]:
    """Return messages by their topics. Rejected: the services could not read one, or it is another pilot's."""
    found: dict[str, list[bytes]] = {}
    for each in payloads:
        message: Any = _CODEC.decode(each)
        if message.pilot_id != pilot_id:
            raise Rejected(
                "NOT_ALLOWED", "a message is of another pilot", "send each pilot's under its token"
            )
        topic = requests.TOPIC if isinstance(message, MatchRequest) else reports.TOPIC
        found.setdefault(topic, []).append(each)
    return found
