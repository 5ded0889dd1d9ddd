"""Reads a JSON or TOML document without being told which it is, as from standard input."""

import re

from wms.jobdesc.description import JobDescription
from wms.jobdesc.from_json import read_json
from wms.jobdesc.from_toml import read_toml

# TOML's headers begin with a bracket too, but none has a brace after it, and none is empty.
_JSON = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*[{\]])")


def looks_like_json(data: bytes) -> bool:
    """Return whether a document begins as JSON does: with `{`, or with `[` and then `{` or `]`."""
    return _JSON.match(data) is not None


def read(data: bytes) -> list[JobDescription]:
    """Return the descriptions of a document: JSON if it begins as JSON does, else TOML.

    Raise InvalidDescription, with every problem of every job, if there is one. Raise Rejected if the document is too large,
    not UTF-8, or makes too many jobs.
    """
    return read_json(data) if looks_like_json(data) else read_toml(data)
