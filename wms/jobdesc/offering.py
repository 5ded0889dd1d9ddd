"""Offering: how large the offer of a job is, so that what can be submitted can be offered to a pilot."""

from collections.abc import Iterator

import msgspec

from wms.jobdesc.array import without_lists
from wms.jobdesc.description import JobDescription
from wms.jobdesc.rules import Finding

OFFER_LIMIT = 600_000
"""Bytes of a job's description and its own parameters, as JSON; offers of several jobs are cut there, too. A message takes half as
much again, for what else is in an offer and for characters that parameters have escaped."""

_encoder = msgspec.json.Encoder()


def large_offers(description: JobDescription) -> Iterator[Finding]:
    """Return a finding if the largest offer of the description's jobs exceeds `OFFER_LIMIT`."""
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
