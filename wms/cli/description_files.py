"""Files of descriptions in any language. The language is recognised by the content, and what could not be translated is shown in a table."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from wms.cli.printing import harmless, note
from wms.cli.table import TableColumn, fitted
from wms.errors import Rejected, shown
from wms.jobdesc import JobDescription
from wms.jobdesc.languages.catalogue import LANGUAGES, language_of
from wms.jobdesc.languages.translation import Language, LocalFile, Translation
from wms.jobdesc.loss_report import LossEntry
from wms.jobdesc.problem import InvalidDescription, Problem

ROWS = 50
"""How many rows a table of losses on standard error may have. --json has all rows."""
HEAD = 65_536
"""By how many bytes at the beginning of a file its language is recognised, before the whole file is read."""
WIDTH = 80
_OURS = {".toml": "toml", ".json": "json", ".jsonl": "json", ".ndjson": "json"}
_COLUMNS = (
    TableColumn("LINE>", 0),
    TableColumn("ELEMENT", 1, "cut", 12),
    TableColumn("FATE", 1),
    TableColumn("HOW", 1, "wrap", 24),
)


class GivenDescriptions(NamedTuple):
    """The descriptions that a command line gives, with the input files that their documents name."""

    descriptions: list[JobDescription]
    files: list[dict[str, Path]]
    """For each description, the files of this machine that its document names, by their names in the job's directory."""


def is_recognised(name: str) -> bool:
    """Return whether a file's content is in a language of job descriptions. False for a missing file and for an executable one."""
    path = Path(name)
    if not path.is_file() or os.access(path, os.X_OK):
        return False
    try:
        with path.open("rb") as file:
            return language_of(file.read(HEAD)) is not None
    except OSError:
        return False


def translation_of(name: str, data: bytes) -> Translation:
    """Return the translation of a file with this content. Raise Rejected, with the file's name, if it is in no known language or malformed."""
    language = _language(name, data)
    if language is None:
        known = ", ".join(each.title for each in LANGUAGES)
        raise Rejected(
            "NOT_A_DESCRIPTION",
            f"{shown(name, 200)} is no file of descriptions",
            f"the languages are {known}",
        )
    try:
        return language.read(data)
    except InvalidDescription as invalid:
        raise InvalidDescription(_named(name, invalid)) from None
    except Rejected as fault:
        raise Rejected(fault.code, f"{name}: {fault.message}", fault.remedy, fault.details) from None


def jobs_of_file(name: str, data: bytes, *, strict: bool) -> GivenDescriptions:
    """Return the jobs that a file describes, and print on standard error what its translation lost.

    Raise InvalidDescription if a job is invalid, or if `strict` is True and anything was lost. Raise Rejected if a file
    that the document names is missing.
    """
    found = translation_of(name, data)
    jobs = jobs_of(name, found, strict=strict)
    if found.report.losses:
        note(f"{name}: {found.report.in_short()}; what is impossible is left out:")
        note_entries(found.report.losses)
    return GivenDescriptions(jobs, [_beside(name, each) for each in found.local_files or [()] * len(jobs)])


def _beside(name: str, files: Sequence[LocalFile]) -> dict[str, Path]:
    """Return the files that a document names, by their names in the job's directory. Their paths are relative to the document `name`.

    Raise Rejected if one is missing.
    """
    found = {each.name: Path(name).parent / each.path for each in files}
    for path in found.values():
        if not path.is_file():
            remedy = "its paths are relative to the document"
            raise Rejected("NO_SUCH_FILE", f"{name} names {shown(str(path), 200)}, which is no file", remedy)
    return found


def jobs_of(name: str, found: Translation, *, strict: bool) -> list[JobDescription]:
    """Return the descriptions that the translation of the file `name` found.

    Raise InvalidDescription if a job is invalid, or if `strict` is True and anything was lost. The place of each problem begins
    with the file's name.
    """
    try:
        return found.jobs(strict=strict)
    except InvalidDescription as invalid:
        raise InvalidDescription(_named(name, invalid)) from None


def note_entries(entries: Sequence[LossEntry]) -> None:
    """Print entries of a loss report as a table on standard error."""
    rows = [(str(each.line or ""), each.element, each.fate, each.sentence) for each in entries[:ROWS]]
    if not rows:
        return
    width = os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr.isatty() else WIDTH
    clean = [[harmless(cell) for cell in row] for row in rows]
    for line in fitted(_COLUMNS, clean, width).lines:
        note("  ".join(line).rstrip())
    if len(entries) > ROWS:
        note(f"... and {len(entries) - ROWS:,} more; --json has all")


def _language(name: str, data: bytes) -> Language | None:
    # A malformed file of ours may look like anything: then its name tells what its problems are told of.
    ours = _OURS.get(Path(name).suffix.lower())
    found = language_of(data)
    if ours and (found is None or found.name in _OURS.values()):
        return next(each for each in LANGUAGES if each.name == ours)
    return found or (language_of(b"{}") if not data.strip() else None)


def _named(name: str, invalid: InvalidDescription) -> list[Problem]:
    return [msgspec.structs.replace(each, place=f"{name}: {each.place}") for each in invalid.problems]
