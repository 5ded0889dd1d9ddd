"""Writes descriptions as JSON: an object for one, a list for several. Fields that have their default are left out."""

from collections.abc import Sequence

import msgspec

from wms.jobdesc.description import JobDescription


def write_json(descriptions: Sequence[JobDescription]) -> str:
    """Return an indented JSON document with these descriptions. `read_json` reads it as equal descriptions."""
    whole = descriptions[0] if len(descriptions) == 1 else list(descriptions)
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"
