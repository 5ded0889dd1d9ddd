"""Assembles the gateway: makes its loops (tasks that run until the end) and the objects that they share."""

from services.gateway import submission_parsing
from services.gateway.application import application
from services.gateway.authentication import Authentication
from services.gateway.config import Config
from services.gateway.event_feed import EventFeed
from services.gateway.http_connection import ConnectionBounds
from services.gateway.http_server import HttpServer
from services.gateway.older_events import OlderEvents
from services.gateway.pilot_exchanges import ExchangeAnswers
from services.gateway.service_channels import ServiceChannels
from services.gateway.service_requests import Desk, PilotDesk
from services.gateway.site_inboxes import SiteInboxes
from wms.bus.grouped_sends import GroupedSends
from wms.bus.topics import find
from wms.messages.events import TOPIC
from wms.parsing.parser_pool import ParserPool
from wms.runtime.host import Host
from wms.transfer import open_store


async def build(host: Host, config: Config) -> None:
    """Make the loops of the gateway from its configuration, and add them to the host (the process that runs them)."""
    settings = config.gateway
    services = ServiceChannels(config.kafka)
    feed = EventFeed(host.kafka, find(TOPIC))
    older = OlderEvents(host.kafka, find(TOPIC))
    store = open_store(config.sandboxes.url, config.sandboxes.s3) if config.sandboxes.url else None
    outbox = GroupedSends(host.kafka)
    parsers = ParserPool(submission_parsing.__name__)
    pilots = PilotDesk(outbox, SiteInboxes(host.kafka), ExchangeAnswers(host.kafka, outbox))
    desk = Desk(
        settings=settings,
        authentication=Authentication(host.verifier, config.requests),
        services=services,
        feed=feed,
        older=older,
        parsers=parsers,
        pilots=pilots,
        store=store,
        db=host.db,
        signed_url_seconds=config.sandboxes.signed_url_seconds,
    )
    host.add(services)
    host.add(feed)
    host.add(parsers)
    host.add(pilots.inboxes)
    host.add(pilots.exchanges)
    bounds = ConnectionBounds(settings)
    host.add(HttpServer(application(desk), settings, bounds, desk.end, services.close))
    host.show("url", lambda: settings.url)
    host.show("waiting", lambda: services.waiting)
    host.show("pilots", lambda: pilots.inboxes.pilots)
    host.show("pilot_sites", lambda: pilots.inboxes.sites)
    host.show("requests", lambda: desk.handled)
    host.show("parsers_killed", lambda: parsers.killed)
    host.show("refused", lambda: desk.authentication.refused)
    host.show("connections", lambda: len(bounds.places))
    host.show("cut_off", lambda: bounds.places.cut)
