"""The Kafka topics of the system: names, numbers of partitions, and how long messages are kept."""

from typing import Final

import msgspec

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


class Topic(msgspec.Struct, frozen=True):
    """A Kafka topic, with the settings with which it is created."""

    name: str
    partitions: int
    """The number of partitions: at most 4 where clients write, since the embedded broker creates missing topics with 4."""
    retention_hours: int = 24
    gathered_seconds: float = 0.0
    """For how many seconds the relay collects messages before it sends them. It is longer for topics on which no client waits."""
    is_compacted: bool = False
    """Whether the last message of each key is kept for ever, and no other one for long."""
    holds_orders: bool = False
    """Whether its messages make jobs or name them by ids that a restored database may give out anew: such a database keeps them aside."""
    is_internal: bool = False
    """Whether only services write to the topic. Its messages are signed."""
    is_open: bool = False
    """Whether messages need neither token nor signature. Their handlers check a proof in each of them."""


SHARED: Final = (
    Topic(commands.TOPIC, 4, 168, holds_orders=True),
    Topic(queries.TOPIC, 4, 1),
    Topic(replies.GATEWAY_INBOX, 1, 1),
    Topic(ads.TOPIC, 2, 24),
    Topic(match_requests.TOPIC, 4, 1),
    Topic(reports.TOPIC, 4, 168),
    Topic(events.TOPIC, 4, 168, 0.05),
    # One partition, as jobs that enter and leave a queue must be seen in order.
    Topic(queue_changes.TOPIC, 1, 24, is_internal=True),
    Topic(broker.TOPIC, 4, 24, is_internal=True),
    Topic(broker.PLACEMENTS_TOPIC, 1, 1, is_internal=True),
    Topic(agreements.OFFERS_TOPIC, 4, 24, is_internal=True),
    Topic(agreements.DECISIONS_TOPIC, 4, 24, is_internal=True),
    Topic(pilot_exchange.TOPIC, 4, 1, is_open=True),
    Topic(pilot_exchange.ANSWERS_TOPIC, 1, 1),
    Topic(database_marks.TOPIC, 1, is_internal=True, is_compacted=True),
)
"""The topics that every system has, besides inboxes. Messages are kept for slow readers only; the state is in Postgres."""


def user_inbox(owner: str) -> Topic:
    """Return the topic in which one user's clients get their answers."""
    return Topic(replies.inbox(owner), 1, 1)


def site_inbox_of(site: str) -> Topic:
    """Return the topic in which the pilots of one site get their orders."""
    return Topic(site_inbox.inbox(site), 1, 1)


def find(name: str) -> Topic:
    """Return the shared topic with this name. Any other name is taken for an inbox, which has one partition."""
    return next((each for each in SHARED if each.name == name), Topic(name, 1, 1))
