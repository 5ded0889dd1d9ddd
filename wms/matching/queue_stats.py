"""Statistics of one task queue as matchers store them: its waiting jobs by user priority, and its recent matches."""

from msgspec import Struct


class Level(Struct, frozen=True, kw_only=True):
    """The waiting jobs of one user priority in a task queue; their ids lie between `oldest` and `newest`, both included."""

    user_priority: float
    count: int
    oldest: int
    newest: int


class Served(Struct, frozen=True, kw_only=True):
    """The recent matches of a queue, as a fading count: each match counts less with time, by 1/e every `fading_seconds`."""

    faded_count: float
    watched_seconds: float
    """Seconds for which matches have been counted."""
    fading_seconds: float
