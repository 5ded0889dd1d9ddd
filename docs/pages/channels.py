"""Every topic with its messages, who writes it and who reads it: what the pages about messages go through."""

from types import ModuleType
from typing import Any, get_args

import msgspec

from docs.pages.structs import Kind
from wms.bus.topics import SHARED, Topic
from wms.messages import (
    ads,
    agreements,
    broker,
    commands,
    database_marks,
    events,
    match_requests,
    pilot_exchange,
    queries,
    queue_changes,
    replies,
    reports,
    site_inbox,
)


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """A topic, or all topics of one form."""

    topic: Topic
    module: ModuleType
    union: Any
    parameter: str = ""
    """What stands between braces in the name."""
    writers: str
    readers: str
    bearer: str = ""
    """Whose token the header must carry; empty where none is looked at."""
    trust: str
    """What of its messages is believed, and why."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The messages, in the order of the union."""
        return get_args(self.union) or (self.union,)


def _shared(module: ModuleType, union: Any, name: str = "", **said: str) -> Channel:
    topic = next(each for each in SHARED if each.name == (name or module.TOPIC))
    return Channel(topic=topic, module=module, union=union, **said)


CHANNELS = (
    _shared(
        commands,
        commands.Command,
        writers="users' tools",
        readers="job manager",
        bearer="user (Control: also service)",
        trust="that who has the token orders it",
    ),
    _shared(
        queries,
        queries.Asked,
        writers="users' tools",
        readers="job manager",
        bearer="any",
        trust="that who has the token asks it",
    ),
    Channel(
        topic=Topic("wms.user.{owner}.inbox", 1, 1),
        module=replies,
        union=replies.Reply,
        parameter="owner",
        writers="job manager",
        readers="that user's tools",
        trust="what answers a question of this tool, by the random id that it made for it",
    ),
    _shared(
        replies,
        replies.Reply,
        replies.GATEWAY_INBOX,
        writers="job manager",
        readers="gateway",
        trust="what answers a request under way, by the owner whom the service verified and the random id of the request "
        "([ADR 52](adr/0052-one-connection-for-all-users.md))",
    ),
    _shared(
        ads,
        ads.AdvertiserMessage,
        writers="advertiser",
        readers="matcher",
        bearer="site, of the site that is spoken for",
        trust="what a site says of itself, until it expires",
    ),
    _shared(
        match_requests,
        match_requests.Request,
        writers="job agent, or gateway for it",
        readers="matcher",
        bearer="pilot, of that pilot",
        trust="what a pilot offers, as far as its token, its row and its slots allow",
    ),
    Channel(
        topic=Topic("wms.site.{site}.inbox", 1, 1),
        module=site_inbox,
        union=site_inbox.ToAgent,
        parameter="site",
        writers="matcher, job manager",
        readers="that site's job agents, or gateway for them",
        trust="what the services signed for this pilot, in answer to what it said ([ADR 31](adr/0031-orders-signed-for-one-pilot.md))",
    ),
    _shared(
        reports,
        reports.FromAgent,
        writers="job agent, or gateway for it",
        readers="job manager",
        bearer="pilot, of that pilot",
        trust="what a pilot says of jobs that it holds under their epochs",
    ),
    _shared(
        events,
        events.Fact,
        writers="job manager, matcher",
        readers="whoever wants to know",
        trust="nothing: tools take it as a sign to look again, and ask what is so",
    ),
    _shared(
        queue_changes,
        queue_changes.Change,
        writers="job manager, matcher",
        readers="every matcher",
        trust="what a service signed, once and for five minutes, as a hint: jobs are claimed in Postgres "
        "([ADR 31](adr/0031-orders-signed-for-one-pilot.md))",
    ),
    _shared(
        broker,
        broker.ToBroker,
        writers="job manager, pilot submitter",
        readers="resource broker",
        trust="what a service signed, at any time, as a hint: the database decides what is to be placed",
    ),
    _shared(
        broker,
        broker.PlacementsOrdered,
        broker.PLACEMENTS_TOPIC,
        writers="resource broker",
        readers="pilot submitter",
        trust="what a service signed, at any time, as a hint: the database decides what is to be sent",
    ),
    _shared(
        agreements,
        agreements.ToSite,
        agreements.OFFERS_TOPIC,
        writers="resource broker, job manager",
        readers="agreement service of that site",
        trust="what a service signed; an agreement is made once, whatever comes twice",
    ),
    _shared(
        agreements,
        agreements.AgreementDecided,
        agreements.DECISIONS_TOPIC,
        writers="agreement service",
        readers="resource broker",
        trust="what a service signed, as a hint: the table of agreements says what is so",
    ),
    _shared(
        pilot_exchange,
        pilot_exchange.SecretExchange,
        writers="gateway, for job agents",
        readers="pilot submitter",
        trust="that who made the proof has the pilot's secret, once ([ADR 48](adr/0048-pilots-over-https.md))",
    ),
    _shared(
        pilot_exchange,
        pilot_exchange.ExchangeAnswer,
        pilot_exchange.ANSWERS_TOPIC,
        writers="pilot submitter",
        readers="every gateway, for job agents",
        trust="what only the holder of the pilot's secret can decrypt; a refusal is believed as it is",
    ),
    _shared(
        database_marks,
        database_marks.DatabaseMark,
        writers="job manager",
        readers="every service, when it starts",
        trust="what a service signed, at any time: a database that does not know it was restored or replaced "
        "([ADR 66](adr/0066-incarnations-of-the-database.md))",
    ),
)


def tag(kind: Kind) -> str:
    """Return the word by which a message is known on the wire."""
    return str(kind.__struct_config__.tag)
