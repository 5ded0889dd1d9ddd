"""Checks the size of jobs: each job that is submitted must also fit into the message that offers it to a pilot."""

from collections.abc import Iterator

import msgspec

from wms.jobdesc.array import without_lists
from wms.jobdesc.description import JobDescription
from wms.jobdesc.rules import Finding

OFFER_LIMIT = 600_000
"""How many bytes a job's description and its own parameters may have as JSON. A message with offers of several jobs ends at this size, too.

The message itself may be half as large again, for its other fields and for escaped characters of parameters.
"""

_encoder = msgspec.json.Encoder()


def large_offers(description: JobDescription) -> Iterator[Finding]:
    """Yield a finding if the offer of any job of the description could exceed `OFFER_LIMIT`."""
    size = len(_encoder.encode(without_lists(description)))
    size += sum(_widest(values) + len(name) for name, values in description.parameters.items())
    if size > OFFER_LIMIT:
        yield (
            "",
            f"TOO_LARGE: offering it to a pilot takes {size:,} bytes, more than {OFFER_LIMIT:,}",
            "put what is long into a file of the input sandbox",
        )


def _widest(values: tuple[str, ...]) -> int:
    return len(_encoder.encode(max(values, key=_bytes))) if values else 0


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
