"""Endpoints that ask a service: the request becomes a Kafka message, and the service's reply becomes the response."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from services.gateway import conditional_requests, request_parsing
from services.gateway.authentication import Authentication
from services.gateway.concurrent_requests import ConcurrentRequests
from services.gateway.config import GatewaySettings
from services.gateway.event_feed import EventFeed
from services.gateway.older_events import OlderEvents
from services.gateway.open_archives import OpenArchives
from services.gateway.operation import JSON_TYPE
from services.gateway.pilot_exchanges import ExchangeAnswers
from services.gateway.route import Requester, Route
from services.gateway.service_channels import ServiceChannels
from services.gateway.shared_room import MEGABYTE, SharedRoom
from services.gateway.site_inboxes import SiteInboxes
from services.gateway.transfers import Transfers
from wms.auth.principal import Principal
from wms.bus.grouped_sends import GroupedSends
from wms.client.channel import Channel
from wms.client.credential import UserCredential
from wms.db.database import Database
from wms.messages import commands, queries
from wms.messages.wire import Codec, encode
from wms.parsing.parser_pool import ParserPool
from wms.transfer import SandboxStore

DOCUMENTS_BYTES: Final = 512 * MEGABYTE
"""The memory for documents that wait for a parsing process, or for replies."""

CODECS: Final[Mapping[str, Codec[Any]]] = {
    commands.TOPIC: Codec(commands.Command),
    queries.TOPIC: Codec(queries.Asked),
}
"""The message checks that the services use, by topic. The gateway applies them first, so it sends no message that a service cannot decode."""


class PilotDesk:
    """What the endpoints for pilots share: the sender of pilots' messages, the readers of orders by site, and the exchanges of secrets for tokens."""

    def __init__(self, outbox: GroupedSends, inboxes: SiteInboxes, exchanges: ExchangeAnswers) -> None:
        self.outbox = outbox
        self.inboxes = inboxes
        self.exchanges = exchanges


class Desk:
    """What all endpoints share: the check of tokens and rates, the channels to services, the feed of job events, the store and the settings."""

    def __init__(
        self,
        *,
        settings: GatewaySettings,
        authentication: Authentication,
        services: ServiceChannels,
        feed: EventFeed,
        older: OlderEvents,
        parsers: ParserPool,
        pilots: PilotDesk,
        store: SandboxStore | None,
        db: Database | None = None,
        signed_url_seconds: float = 600.0,
    ) -> None:
        self.settings = settings
        self.authentication = authentication
        self.services = services
        self.feed = feed
        self.older = older
        self.parsers = parsers
        self.pilots = pilots
        self.store = store
        self.db = db
        """The database, in which it is noted who sent which archive. None only without a store."""
        self.transfers = Transfers(settings)
        self.temporary = SharedRoom(settings.temporary_mb * MEGABYTE, "archives")
        """The room of the temporary directory."""
        self.documents = SharedRoom(DOCUMENTS_BYTES, "documents")
        """The memory for large documents, from before they are read until their jobs are submitted."""
        self.archives = OpenArchives(store, self.temporary) if store is not None else None
        self.signed_url_seconds = signed_url_seconds
        self.concurrent_requests = ConcurrentRequests(settings.owner_requests)
        self.ending = asyncio.Event()
        """Set when the gateway begins to shut down. Streams of events watch it and end."""
        self.handled = 0
        """The number of requests with a valid token that were admitted since the start."""

    def end(self) -> None:
        """End all streams of job events and of orders to pilots, because the gateway shuts down."""
        self.ending.set()
        self.feed.followers.wake()
        self.pilots.inboxes.end()

    def admit(self, request: Request, *, payloads: bool = False) -> UserCredential:
        """Return the verified token of a request. With `payloads`, a payload's token is accepted too.

        Raise Rejected if the token is missing, invalid or not accepted. Raise TooMany if a request rate or the owner's number of parallel
        requests is exceeded.
        """
        return self.admit_as(request, payloads=payloads)[0]

    def admit_pilot(self, request: Request, pilot_id: str = "") -> tuple[UserCredential, Principal]:
        """Return the verified token of a pilot's request, and the pilot that it names. With `pilot_id`, the token must be that pilot's.

        Raise Rejected if the token is missing, invalid or no such pilot's, and TooMany if a request rate is exceeded.
        """
        admitted = self.authentication.admit_pilot(request, pilot_id)
        self.handled += 1
        return admitted

    def admit_holder(self, request: Request) -> UserCredential:
        """Return the verified token of a request by a pilot or a payload.

        Raise Rejected if the token is missing, invalid or of another kind, and TooMany if a request rate is exceeded.
        """
        admitted = self.authentication.admit_holder(request)
        self.handled += 1
        return admitted

    def admit_as(self, request: Request, *, payloads: bool = False) -> tuple[UserCredential, Principal]:
        """Return the verified token of a request, and the principal that it names. With `payloads`, a payload's token is accepted too.

        Raise Rejected if the token is missing, invalid or not accepted. Raise TooMany if a request rate or the owner's number of parallel
        requests is exceeded.
        """
        credential, principal = self.authentication.admit(request, payloads=payloads)
        self.concurrent_requests.enter(request, principal.owner)
        self.handled += 1
        return credential, principal


class ServiceRequest:
    """The endpoint of one route: sends the route's message to a service and returns the reply."""

    def __init__(self, route: Route, desk: Desk) -> None:
        self._route = route
        self._desk = desk

    async def respond(self, request: Request) -> Response:
        """Send the route's message, and return the response with the service's reply; status 304 if the client of a GET has it already.

        Raise Rejected if the request is malformed or refused, and Unavailable if no reply comes in time.
        """
        route, settings = self._route, self._desk.settings
        credential = self._desk.admit(request, payloads=route.for_payloads)
        given: list[Any] = [request_parsing.parameters(request, route.parameters)]
        if route.body is not None:
            given.append(await request_parsing.body(request, route, settings.read_seconds))
        name = request_parsing.request_id(request)
        channel = self._desk.services.channel(credential)
        message = route.message(Requester(name, channel.client), *given)
        answer = await ask(channel, route, name, message, settings.answer_seconds)
        return (
            conditional_requests.answer_to(request, answer)
            if route.method == "GET"
            else json_response(answer)
        )


async def ask(
    channel: Channel, route: Route, request_id: str, message: msgspec.Struct, seconds: float
) -> Any:
    """Send a route's message, and return the reply, or the part of it that the route shows.

    Raise Rejected if the message is malformed or the service refuses it. Raise Unavailable if no reply comes within `seconds`.
    """
    CODECS[route.topic].decode(encode(message))
    kind = route.reply or route.answer
    reply: Any = await channel.ask(route.topic, request_id, message, kind, seconds)
    return route.view(reply) if route.view else reply


def json_response(value: Any, status: int = 200) -> Response:
    """Return a response with the value encoded as JSON, and this HTTP status."""
    return Response(msgspec.json.encode(value), status, media_type=JSON_TYPE)
