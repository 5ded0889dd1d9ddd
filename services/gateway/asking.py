"""Answers a request by asking a service: the parameters become a message, and the service's reply the response."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway import conditional, received
from services.gateway.callers import Callers
from services.gateway.config import GatewaySettings
from services.gateway.event_feed import EventFeed
from services.gateway.gate import Gate
from services.gateway.older_events import OlderEvents
from services.gateway.operation import JSON_TYPE
from services.gateway.parsing_turns import ParsingTurns
from services.gateway.pilot_exchanges import ExchangeAnswers
from services.gateway.route import Requester, Route
from services.gateway.site_inboxes import SiteInboxes
from services.gateway.under_way import UnderWay
from wms.auth.principal import Principal
from wms.bus.grouped_sends import GroupedSends
from wms.client.channel import Channel
from wms.client.credential import UserCredential
from wms.messages import commands, queries
from wms.messages.wire import Codec, encode
from wms.transfer import SandboxStore

CODECS: Final[Mapping[str, Codec[Any]]] = {
    commands.TOPIC: Codec(commands.Command),
    queries.TOPIC: Codec(queries.Asked),
}
"""The services' own checks of messages, by topic: a message that a service could not read is never sent."""


class PilotDesk:
    """What the endpoints of pilots share: what they send, the inboxes of sites, and the answers to exchanges of secrets."""

    def __init__(self, outbox: GroupedSends, inboxes: SiteInboxes, exchanges: ExchangeAnswers) -> None:
        self.outbox = outbox
        self.inboxes = inboxes
        self.exchanges = exchanges


class Desk:
    """What the endpoints share: the gate, the way to the services, the feed of events, and the settings."""

    def __init__(
        self,
        *,
        settings: GatewaySettings,
        gate: Gate,
        callers: Callers,
        feed: EventFeed,
        older: OlderEvents,
        turns: ParsingTurns,
        pilots: PilotDesk,
        store: SandboxStore | None,
        signed_url_seconds: float = 600.0,
    ) -> None:
        self.settings = settings
        self.gate = gate
        self.callers = callers
        self.feed = feed
        self.older = older
        self.turns = turns
        self.pilots = pilots
        self.store = store
        self.signed_url_seconds = signed_url_seconds
        self.under_way = UnderWay(settings.owner_requests)
        self.ending = asyncio.Event()
        """Set once the gateway ends, so that streams of events end too."""
        self.handled = 0
        """The number of requests with a token that were admitted."""

    def end(self) -> None:
        """End the streams of events, because the gateway ends."""
        self.ending.set()
        self.feed.followers.wake()
        self.pilots.inboxes.end()

    def admit(self, request: Request, *, payloads: bool = False) -> UserCredential:
        """Return the token of a request. Raise Rejected if it is missing or invalid, or if a budget is spent.

        Tokens of payloads are refused without `payloads`.
        """
        return self.admit_as(request, payloads=payloads)[0]

    def admit_pilot(self, request: Request, pilot_id: str = "") -> tuple[UserCredential, Principal]:
        """Return the token of a pilot's request, and the pilot. Without `pilot_id` it may be any. Rejected: see `Gate.admit_pilot`."""
        admitted = self.gate.admit_pilot(request, pilot_id)
        self.handled += 1
        return admitted

    def admit_holder(self, request: Request) -> UserCredential:
        """Return the token of a pilot, or of a payload. Raise Rejected for others; see `Gate.admit_pilot`."""
        admitted = self.gate.admit_holder(request)
        self.handled += 1
        return admitted

    def admit_as(self, request: Request, *, payloads: bool = False) -> tuple[UserCredential, Principal]:
        """Return the token of a request and who it names. Rejected: see `Gate.admit` and `UnderWay.enter`."""
        credential, principal = self.gate.admit(request, payloads=payloads)
        self.under_way.enter(request, principal.owner)
        self.handled += 1
        return credential, principal


class Asking:
    """The endpoint of one route."""

    def __init__(self, route: Route, desk: Desk) -> None:
        self._route = route
        self._desk = desk

    async def respond(self, request: Request) -> Response:
        """Return the response to a request. Raise Rejected or Unavailable, which the application turns into problem details."""
        route, settings = self._route, self._desk.settings
        credential = self._desk.admit(request, payloads=route.for_payloads)
        given: list[Any] = [received.parameters(request, route.parameters)]
        if route.body is not None:
            given.append(await received.body(request, route, settings.read_seconds))
        name = received.request_id(request)
        channel = self._desk.callers.channel(credential)
        message = route.message(Requester(name, channel.client), *given)
        answer = await ask(channel, route, name, message, settings.answer_seconds)
        return conditional.answer_to(request, answer) if route.method == "GET" else json_response(answer)


async def ask(
    channel: Channel, route: Route, request_id: str, message: msgspec.Struct, seconds: float
) -> Any:
    """Send a route's message, and return the part of the reply that the response shows.

    Raise Rejected if the message is malformed or the service refuses it. Raise Unavailable after `seconds` without an
    answer.
    """
    CODECS[route.topic].decode(encode(message))
    kind = route.reply or route.answer
    reply: Any = await channel.ask(route.topic, request_id, message, kind, seconds)
    return route.view(reply) if route.view else reply


def json_response(value: Any, status: int = 200) -> Response:
    """Return a response with the value as JSON."""
    return Response(msgspec.json.encode(value), status, media_type=JSON_TYPE)
