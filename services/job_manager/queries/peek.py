"""Identifies a request for a running job's output by who asked, what they asked for, and the pilot that is asked."""

from wms.messages.reports import Peeked
from wms.messages.site_inbox import Peek


def peeking(what: Peek | Peeked) -> tuple[str | int, ...]:
    """Return the values that a signature covers: of an order to a pilot to send a job's output (Peek), or of the answer to it (Peeked).

    They are equal for an order and its answer. So the answer proves which order it belongs to.
    """
    return (
        what.pilot_id,
        what.job_id,
        what.epoch,
        what.stream,
        what.query_id,
        what.client,
        what.asker,
    )
