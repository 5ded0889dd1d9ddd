"""Drafts: the fields of a job while a reader finds them, each with its element in the document.

Values are checked by the rules of descriptions when all are known. A value that breaks a rule makes its element impossible.
If the payload would be another without the value, the job is refused.
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
    """A job description in the making. Several drafts of one document may share their notes."""

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
        """Return whether the field of that name was put into the draft."""
        return field in self._fields

    def get(self, field: str, default: Any = None) -> Any:
        """Return the value of the field of that name so far; `default` if it was not put."""
        return self._fields.get(field, default)

    def put(self, field: str, value: Any, origin: Origin, sentence: str = "") -> None:
        """Set a field to a value, as plain data or structs, and note the element it comes from.

        With a sentence, the element is noted as translated; without one, as kept.
        """
        self._fields[field] = value
        self._note(field, field, origin, sentence)

    def update(self, field: str, value: Any) -> None:
        """Set a field that was put before to another value. Its element stays."""
        self._fields[field] = value

    def append(self, field: str, value: Any, origin: Origin, sentence: str = "") -> None:
        """Append a value to a list field, and note its element: as translated if there is a sentence, else as kept."""
        values = self._fields.setdefault(field, [])
        self._note(field, f"{field}[{len(values)}]", origin, sentence)
        values.append(value)

    def put_item(self, field: str, key: str, value: Any, origin: Origin, sentence: str = "") -> None:
        """Set a key of a table field, and note its element: as translated if there is a sentence, else as kept."""
        self._fields.setdefault(field, {})[key] = value
        self._note(field, f"{field}.{key}", origin, sentence)

    def add_input(self, name: str, source: str, origin: Origin, *, executable: bool = False) -> None:
        """Add an input file, from a URL or from the submitter's machine, and note its element.

        `source` is the URL or the path. If the executable of the job has the file's name, it is this file. `executable` says
        whether the file gets execute permission.
        """
        self._carried.add(name)
        if _URL.match(source):
            said = {"name": name, "sources": [source], **({"executable": True} if executable else {})}
            self.append("inputs", said, origin)
        else:
            self.local_files.append(LocalFile(name, source, executable))
            self.notes.translated(origin, f"the file {source} goes with the job")

    def require(self, expression: str, origin: Origin, sentence: str = "") -> None:
        """Add a ClassAd expression that must be true of the resource besides those added before, and note its element.

        `sentence` is what the note says; empty: that the element becomes this requirement.
        """
        self._required.append(f"({expression})")
        self._fields["requirements"] = " && ".join(self._required)
        said = sentence or f"becomes a requirement: {expression}"
        self._note("requirements", "requirements", origin, said)

    def kept(self, origin: Origin, sentence: str = "") -> None:
        """Note that an element is kept without a field of its own."""
        self.notes.kept(origin, sentence)

    def translated(self, origin: Origin, sentence: str) -> None:
        """Note an element whose meaning other fields express; the sentence says how."""
        self.notes.translated(origin, sentence)

    def impossible(self, origin: Origin, sentence: str) -> None:
        """Note an element whose meaning no field can express; the sentence says why."""
        self.notes.impossible(origin, sentence)

    def problem(self, origin: Origin, message: str, remedy: str = "") -> None:
        """Note an element that prevents the job from being made: the message becomes one of `problems`."""
        self.notes.impossible(origin, message)
        if len(self.problems) < PROBLEMS_LIMIT:
            self.problems.append(
                Problem(place=origin.element, message=message, remedy=remedy, line=origin.line)
            )

    def finished(self) -> JobDescription | None:
        """Return the description, or None if `problems` says what prevents it.

        Fields that break a rule are left out, and their elements are noted as impossible. If the payload would not be the
        same without the field, it becomes a problem.
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
        """Write the executable as `./name` if it is the bare name of one of the job's input files.

        A bare name would be looked up in PATH.
        """
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
    """Return the translation of a document into the drafts, which share their notes.

    Raise Rejected if the document makes too many jobs (TOO_MANY_JOBS).
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
