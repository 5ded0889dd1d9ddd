"""What makes a look at a running job's output one look: who asked for what, and which pilot is to tell."""

from wms.messages.reports import Peeked
from wms.messages.site_inbox import Peek


def peeking(what: Peek | Peeked) -> tuple[str | int, ...]:
    """Return the words that a ticket for the look is about, as they stand in the order and in its answer alike."""
    return (
        what.pilot_id,
        what.job_id,
        what.epoch,
        what.stream,
        what.query_id,
        what.client,
        what.asker,
    )
