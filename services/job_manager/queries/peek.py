"""Identifies a request for a running job's output: who asked for what, of which pilot."""

from wms.messages.reports import Peeked
from wms.messages.site_inbox import Peek


def peeking(what: Peek | Peeked) -> tuple[str | int, ...]:
    """Return the values that the ticket of a request proves. They are the same for the order (Peek) and its answer (Peeked)."""
    return (
        what.pilot_id,
        what.job_id,
        what.epoch,
        what.stream,
        what.query_id,
        what.client,
        what.asker,
    )
