"""Statistics of one task queue, as matchers store them: its waiting jobs by user priority, and its recent matches."""

from msgspec import Struct


class Level(Struct, frozen=True, kw_only=True):
    """The waiting jobs of one user priority in a task queue: their number, and the lowest and highest id among them."""

    user_priority: float
    count: int
    oldest: int
    newest: int


class Served(Struct, frozen=True, kw_only=True):
    """The recent matches of a task queue as a fading count: after `fading_seconds` a match counts only 1/e."""

    faded_count: float
    watched_seconds: float
    """For how many seconds the queue's matches have been counted."""
    fading_seconds: float
