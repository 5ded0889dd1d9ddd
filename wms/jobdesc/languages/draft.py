"""Drafts: the fields of a job as a reader collects them, each with the element of the document from which it came.

Values are checked by the rules of descriptions once all are there. A value that breaks a rule is left out, and its element is
noted as impossible: the document is refused unless its user lets it go. Of a list or table, only the item that breaks the rule is
left out. A field without which there is no such job (`ESSENTIAL`) is never let go.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from wms.errors import shown
from wms.jobdesc.array import jobs_in
from wms.jobdesc.conflicts import across
from wms.jobdesc.description import JobDescription
from wms.jobdesc.document import check_count
from wms.jobdesc.languages.translation import LocalFile, Translation
from wms.jobdesc.loss_report import Fate, LossNotes, Origin
from wms.jobdesc.problem import PROBLEMS_LIMIT, Problem
from wms.jobdesc.rules import SHOWN, Finding
from wms.jobdesc.validation import check_fields

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
ESSENTIAL: Final = frozenset(
    {"executable", "arguments", "environment", "stdin", "inputs", "array", "parameters", "input_parameters"}
)
"""The fields that are never let go. If one of them is invalid, the job is refused."""
TEMPLATES: Final = frozenset(
    {"arguments", "environment", "name", "output_sandbox", "inputs", "outputs", "stdin", "stdout", "stderr"}
)
"""The fields whose texts may have placeholders, which differ from job to job of an array."""
_INDEX = re.compile(r"\[([0-9]+)\]")


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
        self._places = dict[str, list[str]]()
        self._required = list[str]()

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

    def overrule(self, field: str, value: Any, origin: Origin) -> None:
        """Set a field to a value that stands over what other elements said of it, which are noted as omitted."""
        if field in self._fields and self._fields[field] != value:
            self._revise(field, "omitted", f"{origin.element} stands over it")
        self.put(field, value, origin)

    def append(self, field: str, value: Any, origin: Origin, sentence: str = "") -> None:
        """Append a value to a list field. `origin` is the element of the source that says so, and is noted.

        If `sentence` is given, the element is noted as translated, and the sentence says how; else as kept.
        """
        values = self._fields.setdefault(field, [])
        place = f"{field}[{len(values)}]"
        self._note(field, place, origin, sentence)
        self._places.setdefault(field, []).append(place)
        values.append(value)

    def put_item(self, field: str, key: str, value: Any, origin: Origin, sentence: str = "") -> None:
        """Set a key of a table field to a value. `origin` is the element of the source that says so, and is noted.

        If `sentence` is given, the element is noted as translated, and the sentence says how; else as kept.
        """
        self._fields.setdefault(field, {})[key] = value
        self._note(field, f"{field}.{key}", origin, sentence)

    def put_items(self, field: str, items: Mapping[str, Any], origin: Origin, sentence: str = "") -> None:
        """Set keys of a table field. `origin` is the one element of the source that says them all, and is noted as by `put`."""
        number = self.notes.add(origin, "translated" if sentence else "kept", sentence)
        for key, value in items.items():
            self._fields.setdefault(field, {})[key] = value
            self._origins[f"{field}.{key}"] = origin
            self._numbers.setdefault(f"{field}.{key}", []).append(number)

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

    def map_texts(self, change: Callable[[str], str]) -> None:
        """Replace every text that may have placeholders, those of files among them, by what `change` makes of it."""
        for field in TEMPLATES & self._fields.keys():
            self._fields[field] = _mapped(self._fields[field], change)

    def kept(self, origin: Origin, sentence: str = "") -> None:
        """Note that an element keeps its meaning although no field of its own expresses it. `sentence` may say how."""
        self.notes.kept(origin, sentence)

    def translated(self, origin: Origin, sentence: str) -> None:
        """Note an element whose meaning other fields express; the sentence says how."""
        self.notes.translated(origin, sentence)

    def omitted(self, origin: Origin, sentence: str) -> None:
        """Note an element that is left out, which cannot change what the job computes, reads, writes or needs; the sentence says why."""
        self.notes.omitted(origin, sentence)

    def impossible(self, origin: Origin, sentence: str) -> None:
        """Note an element that cannot be carried out, and without which the job may be another one; the sentence says why."""
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

        Values that break a rule are left out, and their elements are noted as impossible. A broken rule of an essential field becomes
        a problem.
        """
        self._name_own_program()
        while not self.problems:
            plain: dict[str, object] = msgspec.to_builtins(self._fields)
            findings = _findings(plain)
            if not findings:
                return msgspec.convert(plain, JobDescription)
            gone = dict[str, set[int | str | None]]()
            for place, message, remedy in findings:
                field, key = self._item_at(place.lstrip("."))
                if self._refuse(field, key, message, remedy):
                    gone.setdefault(field, set()).add(key)
            for field, keys in gone.items():
                self._leave_out(field, keys)
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
        self._numbers.setdefault(place, []).append(
            self.notes.add(origin, "translated" if sentence else "kept", sentence)
        )

    def _item_at(self, place: str) -> tuple[str, int | str | None]:
        """Return the field of a finding's place, and the index or key of the item within it; None if the finding is of the whole field."""
        field = re.split(r"[.\[]", place, maxsplit=1)[0]
        value, rest = self._fields.get(field), place[len(field) :]
        if isinstance(value, list | tuple) and (found := _INDEX.match(rest)) and int(found[1]) < len(value):
            return field, int(found[1])
        if isinstance(value, dict):
            keys = [
                key for key in value if re.match(re.escape(f".{shown(key, SHOWN)}") + r"(?:[.\[]|$)", rest)
            ]
            return field, max(keys, key=len, default=None)
        return field, None

    def _place_of(self, field: str, key: int | str | None) -> str:
        """Return the place by which an item, or the whole field, was noted."""
        places = self._places.get(field, ())
        if isinstance(key, int):
            return places[key] if key < len(places) else f"{field}[{key}]"
        return field if key is None else f"{field}.{key}"

    def _refuse(self, field: str, key: int | str | None, message: str, remedy: str) -> bool:
        """Note that an item breaks a rule. Return whether it can be left out; if not, there is a problem."""
        place = self._place_of(field, key)
        if field in ESSENTIAL:
            origin = self._origins.get(place) or self._origins.get(field, Origin(field))
            problem = Problem(place=origin.element, message=message, remedy=remedy, line=origin.line)
            self.problems.append(problem)
            return False
        if field not in self._fields:
            # A conflict with a default; nothing that was said can be left out for it.
            self.problems.append(Problem(place=field, message=message, remedy=remedy))
            return False
        self._revise(place, "impossible", f"{field} {message}")
        return True

    def _revise(self, place: str, fate: Fate, sentence: str) -> None:
        """Change the notes on the elements that were noted for a place, and for all items below it. There is at least one note."""
        below = [
            each for each in self._numbers if each == place or each.startswith((f"{place}.", f"{place}["))
        ]
        for number in [number for each in below for number in self._numbers.pop(each)]:
            self.notes.revise(number, fate, sentence)
        if not below:
            self.notes.add(self._origins[re.split(r"[.\[]", place, maxsplit=1)[0]], fate, sentence)

    def _leave_out(self, field: str, keys: set[int | str | None]) -> None:
        value = self._fields.pop(field)
        if None in keys:
            self._places.pop(field, None)
        elif isinstance(value, dict):
            self._fields[field] = {key: each for key, each in value.items() if key not in keys}
        else:
            rest = [each for each in range(len(value)) if each not in keys]
            self._places[field] = [self._place_of(field, each) for each in rest]
            self._fields[field] = [value[each] for each in rest]
        if not self._fields.get(field, True):
            del self._fields[field]


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {key: _mapped(each, change) for key, each in value.items()}
        case list() | tuple():
            return [_mapped(each, change) for each in value]
    return value


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
