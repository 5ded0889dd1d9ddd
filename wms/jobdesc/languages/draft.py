"""Drafts: the fields of a job while a reader finds them, each with the element that it comes from.

Values are checked by the rules of descriptions when all are known. A value that breaks a rule makes its element impossible; if the payload
would be another one without it, the job is refused.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from wms.jobdesc.array import jobs_in
from wms.jobdesc.conflicts import across
from wms.jobdesc.description import JobDescription
from wms.jobdesc.document import check_count
from wms.jobdesc.languages.translation import LocalFile, Translation
from wms.jobdesc.loss_report import LossNotes, Origin
from wms.jobdesc.problem import PROBLEMS_LIMIT, Problem
from wms.jobdesc.rules import Finding
from wms.jobdesc.validation import check_fields

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
ESSENTIAL: Final = frozenset(
    {"executable", "arguments", "environment", "stdin", "inputs", "array", "parameters", "input_parameters"}
)
"""The fields without which a job would do something else."""


class JobDraft:
    """One job in the making. Several drafts may share the notes of one document."""

    def __init__(self, notes: LossNotes | None = None) -> None:
        self.notes = LossNotes() if notes is None else notes
        self.problems = list[Problem]()
        self.local_files = list[LocalFile]()
        self._carried = set[str]()
        self._fields = dict[str, Any]()
        self._origins = dict[str, Origin]()
        self._numbers = dict[str, list[int]]()
        self._required = list[str]()
        self._refused = set[str]()

    def __contains__(self, field: str) -> bool:
        """Return whether a field was put."""
        return field in self._fields

    def get(self, field: str, default: Any = None) -> Any:
        """Return the value of a field so far."""
        return self._fields.get(field, default)

    def put(self, field: str, value: Any, origin: Origin, sentence: str = "") -> None:
        """Set a field to a value, as plain data or structs, and note its element: translated if there is a sentence."""
        self._fields[field] = value
        self._note(field, field, origin, sentence)

    def update(self, field: str, value: Any) -> None:
        """Set a field that was put before to another value, which comes from the same element."""
        self._fields[field] = value

    def append(self, field: str, value: Any, origin: Origin, sentence: str = "") -> None:
        """Add a value to a list, and note its element."""
        values = self._fields.setdefault(field, [])
        self._note(field, f"{field}[{len(values)}]", origin, sentence)
        values.append(value)

    def put_item(self, field: str, key: str, value: Any, origin: Origin, sentence: str = "") -> None:
        """Set a key of a table, and note its element."""
        self._fields.setdefault(field, {})[key] = value
        self._note(field, f"{field}.{key}", origin, sentence)

    def add_input(self, name: str, source: str, origin: Origin, *, executable: bool = False) -> None:
        """Add an input file: from a URL, or from the submitter's machine. A program of its name is this file."""
        self._carried.add(name)
        if _URL.match(source):
            said = {"name": name, "sources": [source], **({"executable": True} if executable else {})}
            self.append("inputs", said, origin)
        else:
            self.local_files.append(LocalFile(name, source, executable))
            self.notes.translated(origin, f"the file {source} goes with the job")

    def require(self, expression: str, origin: Origin, sentence: str = "") -> None:
        """Add a ClassAd expression that must be true of the resource as well."""
        self._required.append(f"({expression})")
        self._fields["requirements"] = " && ".join(self._required)
        said = sentence or f"becomes a requirement: {expression}"
        self._note("requirements", "requirements", origin, said)

    def kept(self, origin: Origin, sentence: str = "") -> None:
        """Note an element that needs no field."""
        self.notes.kept(origin, sentence)

    def translated(self, origin: Origin, sentence: str) -> None:
        """Note an element whose meaning other fields have."""
        self.notes.translated(origin, sentence)

    def impossible(self, origin: Origin, sentence: str) -> None:
        """Note an element that no field can say."""
        self.notes.impossible(origin, sentence)

    def problem(self, origin: Origin, message: str, remedy: str = "") -> None:
        """Note an element without which the job cannot be made."""
        self.notes.impossible(origin, message)
        if len(self.problems) < PROBLEMS_LIMIT:
            self.problems.append(
                Problem(place=origin.element, message=message, remedy=remedy, line=origin.line)
            )

    def finished(self) -> JobDescription | None:
        """Return the description, or None if `problems` has what prevents it.

        Fields that break a rule are left out, as long as the payload stays the same, and their elements become impossible.
        """
        self._name_own_program()
        while not self.problems:
            plain: dict[str, object] = msgspec.to_builtins(self._fields)
            findings = _findings(plain)
            if not findings:
                return msgspec.convert(plain, JobDescription)
            for finding in findings:
                self._refuse(*finding)
        return None

    def _name_own_program(self) -> None:
        """A program among the job's files is not looked up in PATH, as a bare name would be."""
        name = self._fields.get("executable")
        if isinstance(name, str) and name in self._carried and "/" not in name:
            self._fields["executable"] = f"./{name}"

    def _note(self, field: str, place: str, origin: Origin, sentence: str) -> None:
        self._origins.setdefault(field, origin)
        self._origins[place] = origin
        self._numbers.setdefault(field, []).append(
            self.notes.add(origin, "translated" if sentence else "kept", sentence)
        )

    def _refuse(self, place: str, message: str, remedy: str) -> None:
        place = place.lstrip(".")
        field = place.partition(".")[0].partition("[")[0]
        if field in ESSENTIAL:
            origin = self._origin_of(place, field)
            self.problems.append(
                Problem(place=origin.element, message=message, remedy=remedy, line=origin.line)
            )
        elif self._fields.pop(field, None) is None and field not in self._refused:
            # A conflict with a default; nothing that was said can be left out for it.
            self.problems.append(Problem(place=field, message=message, remedy=remedy))
        self._refused.add(field)
        for number in self._numbers.pop(field, ()):
            self.notes.revise(number, "impossible", f"{field} {message}")

    def _origin_of(self, place: str, field: str) -> Origin:
        unknown = Origin(field)
        return self._origins.get(place) or self._origins.get(field, unknown)


def _findings(plain: dict[str, object]) -> Sequence[Finding]:
    findings = check_fields(plain)
    if "executable" not in plain:
        findings.append((".executable", "no program is named", "say which program to run"))
    return findings or across(msgspec.convert(plain, JobDescription))


def drafted(language: str, drafts: Iterable[JobDraft]) -> Translation:
    """Return the translation of a document into these drafts, which share their notes.

    Raises:
        Rejected: TOO_MANY_JOBS.

    """
    descriptions, problems, notes = list[JobDescription](), list[Problem](), LossNotes()
    local_files, jobs = list[tuple[LocalFile, ...]](), 0
    for draft in drafts:
        found = draft.finished()
        if found is not None:
            descriptions.append(found)
            local_files.append(tuple(draft.local_files))
            jobs += jobs_in(found)
        check_count(len(descriptions), jobs)
        problems += draft.problems
        notes = draft.notes
    return Translation(
        language=language,
        descriptions=() if problems else tuple(descriptions),
        local_files=() if problems or not any(local_files) else tuple(local_files),
        report=notes.report(),
        problems=tuple(problems[:PROBLEMS_LIMIT]),
    )
