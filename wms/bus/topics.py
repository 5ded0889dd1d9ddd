"""The topics, their partitions, and what makes one."""

from typing import Final

import msgspec

from wms.messages import ads, changes, commands, events, queries, replies, reports, requests, site_inbox


class Topic(msgspec.Struct, frozen=True):
    """One topic as it is to be created."""

    name: str
    partitions: int
    """At most 4 for those that everybody writes to: what the embedded broker gives a topic that it makes by itself."""
    retention_hours: int = 24
    gathered_seconds: float = 0.0
    """For how long the relay gathers messages before it sends them: longer where nobody waits for them."""
    is_internal: bool = False
    """Whether services alone write it, and sign what they write."""


SHARED: Final = (
    Topic(commands.TOPIC, 4, 168),
    Topic(queries.TOPIC, 4, 1),
    Topic(ads.TOPIC, 2, 24),
    Topic(requests.TOPIC, 4, 1),
    Topic(reports.TOPIC, 4, 168),
    Topic(events.TOPIC, 4, 168, 0.05),
    # One: what entered a queue and left it must come in one order.
    Topic(changes.TOPIC, 1, 24, is_internal=True),
)
"""The topics that every system has. Postgres is the truth, so that retention is for readers who lag, not for safety."""


def user_inbox(owner: str) -> Topic:
    """Return the inbox of one user's tools."""
    return Topic(replies.inbox(owner), 1, 1)


def site_inbox_of(site: str) -> Topic:
    """Return the inbox of one site's job agents."""
    return Topic(site_inbox.inbox(site), 1, 1)


def find(name: str) -> Topic:
    """Return the shared topic of that name; any other is somebody's inbox."""
    return next((each for each in SHARED if each.name == name), Topic(name, 1, 1))
