"""Statistics of one task queue as matchers write them down: its waiting jobs by user priority, and its recent matches."""

from msgspec import Struct


class Level(Struct, frozen=True, kw_only=True):
    """The waiting jobs of one user priority of a task queue; their ids lie between `oldest` and `newest`."""

    user_priority: float
    count: int
    oldest: int
    newest: int


class Served(Struct, frozen=True, kw_only=True):
    """How many jobs of a queue were matched lately: a count whose parts fade by 1/e every `fading_seconds`."""

    faded_count: float
    watched_seconds: float
    """For how long there has been a look."""
    fading_seconds: float
