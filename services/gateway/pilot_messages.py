"""`POST /pilots/{pilot_id}/messages`: forwards a pilot's messages under its token, so that services check them like messages over Kafka."""

import asyncio
from typing import Annotated, Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway import request_parsing
from services.gateway.operation import Operation
from services.gateway.service_requests import Desk, json_response
from services.gateway.site_routes import OnePilot
from wms.bus.kafka import bearing
from wms.errors import Rejected
from wms.messages import match_requests, reports
from wms.messages.match_requests import MatchRequest
from wms.messages.reports import Peeked, Report
from wms.messages.wire import PAYLOAD_LIMIT, Codec

MESSAGES_LIMIT: Final = 100
BODY_LIMIT: Final = PAYLOAD_LIMIT + 10_000


class PilotMessageBatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of the request: 1 to 100 messages of one pilot, in their order. They are match requests, reports, and parts of payloads' output."""

    messages: Annotated[tuple[msgspec.Raw, ...], msgspec.Meta(min_length=1, max_length=MESSAGES_LIMIT)]
    """The messages as JSON, each as a pilot would send it to the topics `wms.match.requests` and `wms.job.reports` directly."""


class TakenMessages(msgspec.Struct, frozen=True, kw_only=True):
    """The body of the response once Kafka has stored the messages: `taken` is their number."""

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
    """The endpoint that accepts batches of messages from one pilot."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def respond(self, request: Request) -> Response:
        """Send the messages to Kafka in their order, and return once all are stored.

        Raise Rejected if one is malformed or of another pilot, and Unavailable if Kafka may not have stored one.
        """
        given = request_parsing.parameters(request, OnePilot)
        credential, principal = self._desk.admit_pilot(request, given.pilot_id)
        seconds = self._desk.settings.read_seconds
        batch: PilotMessageBatch = await request_parsing.decoded(
            request, PilotMessageBatch, BODY_LIMIT, seconds
        )
        # All are handed over in their order before the first is awaited.
        await asyncio.gather(
            *(
                self._desk.pilots.outbox.send(topic, bearing(given.pilot_id, payload, credential.token))
                for topic, payload in _with_topics(batch, given.pilot_id)
            )
        )
        self._desk.pilots.inboxes.hurry(principal.site or "")
        return json_response(TakenMessages(taken=len(batch.messages)), MESSAGES.status)


def _with_topics(batch: PilotMessageBatch, pilot_id: str) -> list[tuple[str, bytes]]:
    """Return the messages of a batch, each as a pair of topic and payload. Raise Rejected if one is malformed or of another pilot."""
    found: list[tuple[str, bytes]] = []
    for each in map(bytes, batch.messages):
        message: Any = _CODEC.decode(each)
        if message.pilot_id != pilot_id:
            raise Rejected(
                "NOT_ALLOWED", "a message is of another pilot", "send each pilot's under its token"
            )
        topic = match_requests.TOPIC if isinstance(message, MatchRequest) else reports.TOPIC
        found.append((topic, each))
    return found
