"""Endpoints that forward queries and commands of `wms.client` to the services, for clients that use HTTPS instead of Kafka."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway import request_parsing
from services.gateway.operation import JSON_TYPE, Operation
from services.gateway.service_requests import CODECS, Desk, json_response
from wms.messages import commands, queries, replies
from wms.messages.wire import PAYLOAD_LIMIT


class ForwardingParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters, in the query string, of a forwarded query or command."""

    in_order: bool = True
    """Whether the service handles the message only after all earlier messages of the same user."""


QUERIES: Final = Operation(
    method="POST",
    path="/queries",
    summary="Ask a query of the clients' protocol; nothing is changed",
    parameters=ForwardingParameters,
    body=queries.Asked,
    answer=replies.Reply,
    for_payloads=True,
)
COMMANDS: Final = Operation(
    method="POST",
    path="/commands",
    summary="Give a command of the clients' protocol, which takes effect once under its id",
    parameters=ForwardingParameters,
    body=commands.Command,
    answer=replies.Reply,
)
_TOPICS: Final = {QUERIES.path: queries.TOPIC, COMMANDS.path: commands.TOPIC}


class MessageForwarding:
    """The endpoint that forwards messages to one topic: that of queries or that of commands."""

    def __init__(self, operation: Operation, desk: Desk) -> None:
        self._topic = _TOPICS[operation.path]
        self._desk = desk
        self._for_payloads = operation.for_payloads

    async def respond(self, request: Request) -> Response:
        """Forward the message in the body to its topic, and return the response with the service's reply.

        Raise Rejected if the message is malformed or refused, and Unavailable if no reply comes in time.
        """
        settings = self._desk.settings
        credential = self._desk.admit(request, payloads=self._for_payloads)
        terms = request_parsing.parameters(request, ForwardingParameters)
        request_parsing.require_type(request, JSON_TYPE)
        raw = await request_parsing.whole(request, PAYLOAD_LIMIT, settings.read_seconds)
        message: Any = CODECS[self._topic].decode(raw)
        name = getattr(message, "command_id", "") or getattr(message, "query_id", "")
        channel = self._desk.services.channel(credential)
        ours = msgspec.structs.replace(message, client=channel.client)
        reply: Any = await channel.ask(
            self._topic, name, ours, msgspec.Struct, settings.answer_seconds, in_order=terms.in_order
        )
        return json_response(reply)
