"""Files of descriptions in any language. The language is recognised by the content, and what could not be translated is shown in a table."""

import glob
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from wms.cli.printing import note
from wms.cli.table import TableColumn, fitted
from wms.client.files import files_below
from wms.errors import Rejected, shown
from wms.jobdesc import JobDescription
from wms.jobdesc.languages.catalogue import LANGUAGES, SBATCH, language_of
from wms.jobdesc.languages.submit_machine import FoundName, SubmitMachine
from wms.jobdesc.languages.translation import Language, LocalFile, Translation, WrittenDocument
from wms.jobdesc.loss_report import NAME_LENGTH, LossEntry, LossReport
from wms.jobdesc.problem import InvalidDescription, Problem
from wms.printed_text import escaped
from wms.runtime import clock
from wms.transfer.archive import ProgramFile

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


def is_recognised(name: str, *, program: bool = False) -> bool:
    """Return whether a file's content is in a language of job descriptions. False for a missing file.

    Of executable files with `#!` only batch scripts are, and no executable file that stands for a `program`, after `--`.
    """
    path = Path(name)
    runs = os.access(path, os.X_OK)
    if not path.is_file() or (runs and program):
        return False
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    found = language_of(head)
    return found is SBATCH if runs and head.startswith(b"#!") else found is not None


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
        return language.read(data) if language.read_at is None else language.read_at(data, _machine(name))
    except InvalidDescription as invalid:
        raise InvalidDescription(named(name, invalid)) from None
    except Rejected as fault:
        raise Rejected(fault.code, f"{name}: {fault.message}", fault.remedy, fault.details) from None


def jobs_of_file(name: str, data: bytes, *, lenient: bool = False) -> GivenDescriptions:
    """Return the jobs that a file describes, and print on standard error what its translation lost.

    Raise InvalidDescription if a job is invalid, or, unless `lenient` is True, if what may change it cannot be carried out. Raise Rejected if a file
    that the document names is missing.
    """
    found = translation_of(name, data)
    jobs = jobs_of(name, found, lenient=lenient)
    if found.report.left_out:
        note(f"{name}: {found.report.in_short()}; left out:")
        note_entries(found.report.left_out)
    files = found.local_files or [()] * len(jobs)
    return GivenDescriptions(
        jobs, [_beside(name, each, job.executable) for each, job in zip(files, jobs, strict=True)]
    )


def _beside(name: str, files: Sequence[LocalFile], program: str = "") -> dict[str, Path]:
    """Return the files that a document names, by their names in the job's directory. Their paths are relative to the document `name`.

    The job's `program` may be executed, as other systems have it, whatever its mode is here. Raise Rejected if a file is missing.
    """
    found = dict[str, Path]()
    for each in files:
        path = Path(name).parent / each.path
        if not path.exists():
            remedy = "its paths are relative to the document"
            raise Rejected("NO_SUCH_FILE", f"{name} names {shown(str(path), 200)}, which is no file", remedy)
        if each.executable and path.is_file() and not os.access(path, os.X_OK):
            message = f"{shown(str(path), 200)} may not be executed, and is to be run"
            raise Rejected("NOT_EXECUTABLE", message, f"chmod +x {shown(str(path), 200)}")
        runs = each.executable or each.name == os.path.normpath(program)
        for own, plain in files_below(path, each.name or "."):
            below = ProgramFile(plain) if runs else plain
            if found.setdefault(own, below) != below:
                message = f"{found[own]} and {below} would both be {own}"
                raise Rejected("TWO_FILES", message, "rename one")
    return found


def _machine(name: str) -> SubmitMachine:
    """Return this machine for the document `name`, whose paths are relative to it."""
    from wms.cli.job_descriptions import text_of as text_of_file

    directory = Path(name).parent

    def matching(pattern: str) -> list[FoundName]:
        names = glob.glob(pattern, root_dir=directory)  # noqa: PTH207 - patterns may be absolute
        return [FoundName(each, (directory / each).is_dir()) for each in sorted(names)]

    return SubmitMachine(
        environment=os.environ,
        text=lambda path: text_of_file(str(directory / path)),
        matching=matching,
        draw=random.SystemRandom().randrange,
        now=clock.now().astimezone(),
    )


def jobs_of(name: str, found: Translation, *, lenient: bool = False) -> list[JobDescription]:
    """Return the descriptions that the translation of the file `name` found.

    Raise InvalidDescription if a job is invalid, or, unless `lenient` is True, if what may change it cannot be carried out. The place of each problem begins
    with the file's name.
    """
    try:
        return found.jobs(lenient=lenient)
    except InvalidDescription as invalid:
        raise InvalidDescription(named(name, invalid)) from None


def with_files(written: WrittenDocument, source: Translation) -> WrittenDocument:
    """Return a written document with a note on each file of this machine that goes with the jobs of its source, and not with its own."""
    paths = dict.fromkeys(each.path for files in source.local_files for each in files)
    sentence = "goes with the jobs of the source document alone; submit that, or name the file by --input"
    lost = tuple(LossEntry(shown(path, NAME_LENGTH), "impossible", sentence) for path in paths)
    report = LossReport((*written.report.entries, *lost))
    return msgspec.structs.replace(written, report=report)


def note_entries(entries: Sequence[LossEntry]) -> None:
    """Print entries of a loss report as a table on standard error."""
    rows = [(str(each.line or ""), each.element, each.fate, each.sentence) for each in entries[:ROWS]]
    if not rows:
        return
    width = os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr.isatty() else WIDTH
    clean = [[escaped(cell) for cell in row] for row in rows]
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


def named(name: str, invalid: InvalidDescription) -> list[Problem]:
    """Return the problems of the file `name`, which stands before the place of each."""
    return [
        msgspec.structs.replace(each, place=f"{name}: {each.place}" if each.place else name)
        for each in invalid.problems
    ]
