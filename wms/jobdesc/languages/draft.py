"""Drafts: the fields of a job as a reader collects them, each with the element of the document from which it came.

Values are checked by the rules of descriptions once all are there. A value that breaks a rule is left out, and its element is
noted as impossible. If the job would do something else without the value, the job is refused.
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
"""The fields without which a job would do something else. If one of them is invalid, the job is refused."""


class JobDraft:
    """A job description in the making. Drafts of one document can share their notes, from which its loss report is made."""

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
        """Return whether the draft has a value for this field."""
        return field in self._fields

    def get(self, field: str, default: Any = None) -> Any:
        """Return the present value of a field; `default` if the draft has none."""
        return self._fields.get(field, default)

    def put(self, field: str, value: Any, origin: Origin, sentence: str = "") -> None:
        """Set a field to a value, as plain data or structs. `origin` is the element of the source that says so, and is noted.

        If `sentence` is given, the element is noted as translated, and the sentence says how; else as kept.
        """
        self._fields[field] = value
        self._note(field, field, origin, sentence)

    def update(self, field: str, value: Any) -> None:
        """Replace the value of a field that was put before. The element noted for the field stays the same."""
        self._fields[field] = value

    def append(self, field: str, value: Any, origin: Origin, sentence: str = "") -> None:
        """Append a value to a list field. `origin` is the element of the source that says so, and is noted.

        If `sentence` is given, the element is noted as translated, and the sentence says how; else as kept.
        """
        values = self._fields.setdefault(field, [])
        self._note(field, f"{field}[{len(values)}]", origin, sentence)
        values.append(value)

    def put_item(self, field: str, key: str, value: Any, origin: Origin, sentence: str = "") -> None:
        """Set a key of a table field to a value. `origin` is the element of the source that says so, and is noted.

        If `sentence` is given, the element is noted as translated, and the sentence says how; else as kept.
        """
        self._fields.setdefault(field, {})[key] = value
        self._note(field, f"{field}.{key}", origin, sentence)

    def add_input(self, name: str, source: str, origin: Origin, *, executable: bool = False) -> None:
        """Add the input file `name`. `source` is its URL, or its path on the submitter's machine. `origin` is the element to note.

        If the job's executable has this name, the input file is run. `executable` says whether the file gets execute permission.
        """
        self._carried.add(name)
        if _URL.match(source):
            said = {"name": name, "sources": [source], **({"executable": True} if executable else {})}
            self.append("inputs", said, origin)
        else:
            self.local_files.append(LocalFile(name, source, executable))
            self.notes.translated(origin, f"the file {source} goes with the job")

    def require(self, expression: str, origin: Origin, sentence: str = "") -> None:
        """Add a ClassAd expression to the requirements, all of which must be true of the resource. `origin` is the element to note.

        `sentence` is the text of the note; empty: the note says that the element becomes this requirement.
        """
        self._required.append(f"({expression})")
        self._fields["requirements"] = " && ".join(self._required)
        said = sentence or f"becomes a requirement: {expression}"
        self._note("requirements", "requirements", origin, said)

    def kept(self, origin: Origin, sentence: str = "") -> None:
        """Note that an element keeps its meaning although no field of its own expresses it. `sentence` may say how."""
        self.notes.kept(origin, sentence)

    def translated(self, origin: Origin, sentence: str) -> None:
        """Note an element whose meaning other fields express; the sentence says how."""
        self.notes.translated(origin, sentence)

    def impossible(self, origin: Origin, sentence: str) -> None:
        """Note an element whose meaning no field can express; the sentence says why."""
        self.notes.impossible(origin, sentence)

    def problem(self, origin: Origin, message: str, remedy: str = "") -> None:
        """Note an element because of which the job cannot be made. The message and the remedy are added to `problems`."""
        self.notes.impossible(origin, message)
        if len(self.problems) < PROBLEMS_LIMIT:
            self.problems.append(
                Problem(place=origin.element, message=message, remedy=remedy, line=origin.line)
            )

    def finished(self) -> JobDescription | None:
        """Return the description; None if there are problems, which `problems` then has.

        Fields that break a rule are left out, and their elements are noted as impossible. If the job would do something else
        without the field, the broken rule becomes a problem.
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
        """Change the executable to `./name` if it is the bare name of one of the job's input files.

        The bare name would be looked up in PATH instead of the job's directory.
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
    """Return the translation that consists of these drafts, which share their notes. `language` is the name of the source's language.

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
