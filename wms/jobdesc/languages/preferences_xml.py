"""Job preferences in XML, as in figure 3 of Elmroth and Tordsson (2005): times in minutes, objectives by the names used there.

For preferences that the figure lacks, the names follow its style: StageInTime, EarliestRelativeStart, LatestAbsoluteStart,
Reservation, FlexibleReservation.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from lxml import etree

from wms.jobdesc.document import unreadable
from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.languages.hardened_xml import XmlNode, children, local, origin_of, parsed, word_of_node
from wms.jobdesc.languages.jsdl.number import is_true, real
from wms.jobdesc.preferences import JobPreferences
from wms.jobdesc.problem import InvalidDescription, Problem

ROOT: Final = "JobPreferences"
MINUTE: Final = 60
OBJECTIVES: Final = {
    "EarliestJobCompletion": "earliest-completion",
    "EarliestJobStart": "earliest-start",
}


def preferences_of(data: bytes) -> JobPreferences:
    """Return the preferences of a document of its own, which belongs to a job description in any language.

    Raise InvalidDescription, with every problem, if it is no such document, or says what cannot be carried out.
    """
    root, draft = parsed(data), JobDraft()
    if local(root) != ROOT:
        raise unreadable(f"holds no preferences: its root is {origin_of(root).element}", root.sourceline)
    draft.put("executable", ROOT, origin_of(root))
    read_preferences(draft, root)
    found = draft.finished()
    lost = [each for each in draft.notes.report().entries if each.fate == "impossible"]
    problems = [Problem(place=each.element, message=each.sentence, line=each.line) for each in lost]
    if found is None or found.preferences is None or problems or draft.problems:
        raise InvalidDescription([*problems, *draft.problems])
    return found.preferences


def read_preferences(draft: JobDraft, root: XmlNode) -> None:
    """Set the draft's `preferences` by the XML element `root` (JobPreferences).

    Malformed and unknown child elements are noted in the draft as parts that cannot be translated. No error is raised for them.
    """
    found = dict[str, Any]()
    for section in children(root):
        if local(section) not in ("SchedulingHints", "JobRequirement"):
            draft.impossible(origin_of(section), "no part of job preferences")
            continue
        for each in children(section):
            _read(draft, each, found)
    draft.put("preferences", found, origin_of(root))


def _read(draft: JobDraft, node: XmlNode, found: dict[str, Any]) -> None:
    if local(node) == "FileTransfers":
        for each in children(node):
            _read(draft, each, found)
        return
    read = _PARTS.get(local(node))
    if read is None:
        draft.impossible(origin_of(node), "no part of job preferences")
        return
    try:
        read(node, found)
    except ValueError as fault:
        draft.impossible(origin_of(node), str(fault))
    else:
        draft.kept(origin_of(node))


def _benchmark(node: XmlNode, found: dict[str, Any]) -> None:
    benchmark = {
        "name": node.get("name", ""),
        "result": real(node.get("result", "")),
        "seconds": real(node.get("time", "")) * MINUTE,
    }
    found["benchmarks"] = [*found.get("benchmarks", ()), benchmark]


def _minutes(field: str) -> Callable[[XmlNode, dict[str, Any]], None]:
    def read(node: XmlNode, found: dict[str, Any]) -> None:
        # Empty elements, as in the figure, say nothing.
        if text := word_of_node(node):
            found[field] = real(text) * MINUTE

    return read


def _moment(field: str) -> Callable[[XmlNode, dict[str, Any]], None]:
    def read(node: XmlNode, found: dict[str, Any]) -> None:
        if text := word_of_node(node):
            found[field] = text

    return read


def _truth(field: str) -> Callable[[XmlNode, dict[str, Any]], None]:
    def read(node: XmlNode, found: dict[str, Any]) -> None:
        found[field] = is_true(word_of_node(node))

    return read


def _objective(node: XmlNode, found: dict[str, Any]) -> None:
    text = word_of_node(node)
    if text not in OBJECTIVES:
        raise ValueError(f"is none of {', '.join(OBJECTIVES)}")
    found["objective"] = OBJECTIVES[text]


_PARTS: Final[Mapping[str, Callable[[XmlNode, dict[str, Any]], None]]] = {
    "Benchmark": _benchmark,
    "StageInTime": _minutes("stage_in_seconds"),
    "StageOutTime": _minutes("stage_out_seconds"),
    "EarliestAbsoluteStart": _moment("earliest_start"),
    "EarliestRelativeStart": _minutes("earliest_start_after"),
    "LatestAbsoluteStart": _moment("latest_start"),
    "LatestRelativeStart": _minutes("latest_start_after"),
    "JobObjective": _objective,
    "Reservation": _truth("reservation"),
    "FlexibleReservation": _truth("flexible"),
}


def write_preferences(wanted: JobPreferences, space: str) -> XmlNode:
    """Return a JobPreferences element, whose names are in the XML namespace `space`."""
    root = etree.Element(f"{{{space}}}{ROOT}")

    def add(parent: XmlNode, kind: str, text: str | None, **attributes: str) -> XmlNode:
        child = etree.SubElement(parent, f"{{{space}}}{kind}", attributes)
        child.text = text
        return child

    hints = add(root, "SchedulingHints", None)
    for each in wanted.benchmarks:
        add(
            hints, "Benchmark", None, name=each.name, result=repr(each.result), time=_in_minutes(each.seconds)
        )
    transfers = {"StageInTime": wanted.stage_in_seconds, "StageOutTime": wanted.stage_out_seconds}
    if said := {name: _in_minutes(value) for name, value in transfers.items() if value is not None}:
        parent = add(hints, "FileTransfers", None)
        for name, text in said.items():
            add(parent, name, text)
    requirement = add(root, "JobRequirement", None)
    for name, text in _requirements(wanted).items():
        add(requirement, name, text)
    return root


def _requirements(wanted: JobPreferences) -> dict[str, str]:
    moments = {"EarliestAbsoluteStart": wanted.earliest_start, "LatestAbsoluteStart": wanted.latest_start}
    spans = {
        "EarliestRelativeStart": wanted.earliest_start_after,
        "LatestRelativeStart": wanted.latest_start_after,
    }
    names = {value: name for name, value in OBJECTIVES.items()}
    found = {
        **{name: value.isoformat() for name, value in moments.items() if value is not None},
        **{name: _in_minutes(value) for name, value in spans.items() if value is not None},
        "JobObjective": names[wanted.objective],
    }
    if not wanted.reservation:
        found["Reservation"] = "false"
    if not wanted.flexible:
        found["FlexibleReservation"] = "false"
    return found


def _in_minutes(seconds: float) -> str:
    return repr(seconds / MINUTE)
