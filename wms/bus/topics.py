"""The topics: names, partitions, retention."""

from typing import Final

import msgspec

from wms.messages import ads, changes, commands, events, queries, replies, reports, requests, site_inbox


class Topic(msgspec.Struct, frozen=True):
    """One topic as it is created."""

    name: str
    partitions: int
    """At most 4 for topics that everybody writes: the embedded broker gives so many to a topic that it creates by itself."""
    retention_hours: int = 24
    gathered_seconds: float = 0.0
    """For how long the relay collects messages before it sends them: longer where nobody waits for them."""
    is_internal: bool = False
    """Whether only services write it, with signatures."""


SHARED: Final = (
    Topic(commands.TOPIC, 4, 168),
    Topic(queries.TOPIC, 4, 1),
    Topic(ads.TOPIC, 2, 24),
    Topic(requests.TOPIC, 4, 1),
    Topic(reports.TOPIC, 4, 168),
    Topic(events.TOPIC, 4, 168, 0.05),
    # One partition, as jobs that enter and leave a queue must be seen in order.
    Topic(changes.TOPIC, 1, 24, is_internal=True),
)
"""The topics that every system has. Retention serves slow readers; Postgres holds the truth."""


def user_inbox(owner: str) -> Topic:
    """Return the inbox of one user's tools."""
    return Topic(replies.inbox(owner), 1, 1)


def site_inbox_of(site: str) -> Topic:
    """Return the inbox of one site's job agents."""
    return Topic(site_inbox.inbox(site), 1, 1)


def find(name: str) -> Topic:
    """Return the shared topic of that name; any other is somebody's inbox."""
    return next((each for each in SHARED if each.name == name), Topic(name, 1, 1))
