"""What tests of readers look at: the fields that a document set, and the fates of its elements."""

from typing import Any

import msgspec

from wms.jobdesc.description import JobDescription
from wms.jobdesc.languages.translation import LanguageReader


def fields(description: JobDescription) -> dict[str, Any]:
    """Return the fields that differ from their defaults, as plain values."""
    return dict(msgspec.json.decode(msgspec.json.encode(description)))


def one(read: LanguageReader, text: str) -> dict[str, Any]:
    """Return the fields of the only job of a document."""
    (description,) = read(text.encode()).jobs(lenient=True)
    return fields(description)


def fates(read: LanguageReader, text: str) -> dict[str, tuple[str, int | None]]:
    """Return the fate and the line of each element, by its name."""
    return {each.element: (each.fate, each.line) for each in read(text.encode()).report.entries}
