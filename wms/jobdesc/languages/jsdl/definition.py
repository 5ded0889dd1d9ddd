"""Reads JSDL documents: a JobDefinition, its sweeps, and the job preferences and fields with which this system extends JSDL."""

from collections.abc import Iterator, Sequence
from typing import Final

from wms.jobdesc.array import INDEX, PLACEHOLDER
from wms.jobdesc.document import unreadable
from wms.jobdesc.languages import hardened_xml
from wms.jobdesc.languages.draft import JobDraft, drafted
from wms.jobdesc.languages.hardened_xml import (
    XmlNode,
    attribute_origin,
    children,
    local,
    namespace,
    origin_of,
    word_of_node,
)
from wms.jobdesc.languages.jsdl.application import read_application
from wms.jobdesc.languages.jsdl.extension import fields_of, read_extension
from wms.jobdesc.languages.jsdl.namespaces import JSDL, POSIX, SWEEPS, WMS
from wms.jobdesc.languages.jsdl.resources import file_systems, read_resources
from wms.jobdesc.languages.jsdl.staging import read_staging
from wms.jobdesc.languages.jsdl.sweep import SweepFault, SweepPlan, plan_of
from wms.jobdesc.languages.preferences_xml import ROOT, read_preferences
from wms.jobdesc.languages.translation import Translation
from wms.jobdesc.loss_report import LossNotes, LossReport

NAME: Final = "jsdl"
COPIES_LIMIT: Final = 1_000
"""How many jobs a sweep may make if an array cannot express it. Each of these jobs becomes a description of its own."""
VARIED_LIMIT: Final = 20
_NO_ELEMENT = "is no element of JSDL at this place"
_UNKNOWN = "an extension that is not known here"
_TEMPLATES: Final = {(JSDL, "JobName"), (POSIX, "Argument"), (POSIX, "Environment")}
"""The elements, by namespace and name, whose text may differ between the jobs of an array."""


def looks_like_jsdl(data: bytes) -> bool:
    """Return whether a document is XML whose root element has a name that JSDL uses."""
    return hardened_xml.looks_like_xml(data) and hardened_xml.root_name(data) in (
        "JobDefinition",
        "JobDescription",
    )


def read_jsdl(data: bytes) -> Translation:
    """Return the translation of a JSDL document.

    Raise InvalidDescription if the document is no XML, or no JSDL. Raise Rejected if the document is too large, or makes too
    many jobs.
    """
    root = hardened_xml.parsed(data)
    if namespace(root) != JSDL or local(root) not in ("JobDefinition", "JobDescription"):
        raise unreadable(f"is no JSDL: its root is {origin_of(root).element}", root.sourceline)
    return translation_of(root)


def translation_of(root: XmlNode) -> Translation:
    """Return the translation of the JSDL document below `root`. If the document has sweeps, this changes the tree."""
    sweeps = [each for each in children(root) if namespace(each) in SWEEPS and local(each) == "Sweep"]
    if not sweeps or _is_array_of_ours(root):
        return drafted(NAME, [_job(root, LossNotes())])
    try:
        plan = plan_of(root, sweeps)
    except SweepFault as fault:
        draft = JobDraft()
        draft.problem(origin_of(fault.node), str(fault), "see the guide for the sweeps that are read")
        return drafted(NAME, [draft])
    if len(plan.targets) <= VARIED_LIMIT and all(
        _is_template(each.element) and not each.attribute and "{" not in each.before + each.after
        for each in plan.targets
    ):
        return drafted(NAME, [_array(root, plan)])
    return _copies(root, plan, sweeps[0])


def _is_array_of_ours(root: XmlNode) -> bool:
    extensions = root.iter(f"{{{WMS}}}Extension")
    return any({"array", "parameters"} & set(fields_of(each)) for each in extensions)


def _is_template(node: XmlNode) -> bool:
    # Applications differ by their namespaces alone.
    return (namespace(node), local(node)) in _TEMPLATES or (
        local(node) in ("Argument", "Environment") and namespace(node) != JSDL
    )


def _array(root: XmlNode, plan: SweepPlan) -> JobDraft:
    """Return the draft of an array of jobs, with a parameter for each XML node to which the sweep assigns values."""
    names = {target: f"sweep{number}" for number, target in enumerate(plan.targets, 1)}
    base = {target: target.value() for target in plan.targets}
    columns: dict[str, list[str]] = {name: [] for name in names.values()}
    for row in plan.rows():
        for target, name in names.items():
            columns[name].append(row.get(target, base[target]))
    _protect(root, {INDEX, *columns})
    for target, name in names.items():
        target.assign(f"{{{name}}}")
    draft = _job(root, LossNotes())
    origin = origin_of(plan.targets[0].element)
    draft.put("parameters", columns, origin, f"varies in an array of {plan.jobs:,} jobs")
    return draft


def _protect(root: XmlNode, names: set[str]) -> None:
    """Double the braces in texts below `root` that would be taken for placeholders with one of these names."""
    for node in root.iter():
        if _is_template(node) and node.text and "{" in node.text:
            node.text = PLACEHOLDER.sub(
                lambda found: f"{{{found[0]}}}" if (found[1] or found[2]) in names else found[0], node.text
            )


def _copies(root: XmlNode, plan: SweepPlan, node: XmlNode) -> Translation:
    """Return the translation of a sweep into one description for each job, for sweeps that an array cannot express.

    If there would be too many jobs, the translation has a problem instead, which names the sweep element `node`.
    """
    if plan.jobs > COPIES_LIMIT or plan.jobs * sum(1 for _ in root.iter()) > hardened_xml.ELEMENTS_LIMIT:
        draft = JobDraft()
        message = (
            f"makes {plan.jobs:,} jobs of elements that an array cannot vary, more than {COPIES_LIMIT:,}"
        )
        draft.problem(origin_of(node), message, "vary arguments and environment alone")
        return drafted(NAME, [draft])
    base = {target: target.value() for target in plan.targets}
    found = list[Translation]()
    for row in plan.rows():
        for target in plan.targets:
            target.assign(row.get(target, base[target]))
        found.append(drafted(NAME, [_job(root, LossNotes())]))
    return _joined(found)


def _joined(found: Sequence[Translation]) -> Translation:
    # Every copy has nearly the same notes: the first has them all, of the others only new ones are told.
    entries = dict.fromkeys(entry for each in found for entry in each.report.entries)
    problems = dict.fromkeys(problem for each in found for problem in each.problems)
    descriptions = () if problems else tuple(one for each in found for one in each.descriptions)
    return Translation(
        language=NAME, descriptions=descriptions, report=LossReport(tuple(entries)), problems=tuple(problems)
    )


# --- one job -------------------------------------------------------------------------------------------------------


def _job(root: XmlNode, notes: LossNotes) -> JobDraft:
    draft = JobDraft(notes)
    for name in root.attrib:
        draft.translated(attribute_origin(root, name), "a name within the document alone")
    described = (
        [root]
        if _is(root, "JobDescription")
        else [each for each in children(root) if _is(each, "JobDescription")]
    )
    for each in described:
        _read_description(draft, each)
    beside = [
        each
        for node in {root: None} | dict.fromkeys(described)
        for each in children(node)
        if namespace(each) != JSDL or local(each) == ROOT
    ]
    for each in [] if _is(root, "JobDescription") else children(root):
        if namespace(each) == JSDL and local(each) not in ("JobDescription", ROOT):
            draft.impossible(origin_of(each), _NO_ELEMENT)
    # Our fields last: they stand over what all others say.
    for each in sorted(beside, key=_is_extension):
        _read_beside(draft, each)
    return draft


def _read_description(draft: JobDraft, node: XmlNode) -> None:
    parts = list(children(node))
    resources = next((each for each in parts if _is(each, "Resources")), None)
    systems = file_systems(resources)
    for each in parts:
        if _is(each, "JobIdentification"):
            _read_identification(draft, each)
        elif _is(each, "Application"):
            read_application(draft, each, systems)
        elif _is(each, "Resources"):
            read_resources(draft, each)
        elif _is(each, "DataStaging"):
            read_staging(draft, each, systems)
        elif namespace(each) == JSDL and local(each) != ROOT:
            draft.impossible(origin_of(each), _NO_ELEMENT)
    _run_staged_program(draft)


def _is(node: XmlNode, name: str) -> bool:
    return namespace(node) == JSDL and local(node) == name


def _is_extension(node: XmlNode) -> bool:
    return namespace(node) == WMS and local(node) == "Extension"


def _read_beside(draft: JobDraft, node: XmlNode) -> None:
    """Put an element that is not of JSDL itself into the draft: our extension or job preferences. A sweep is only noted as kept."""
    if _is_extension(node):
        read_extension(draft, node)
    elif local(node) == ROOT and namespace(node) in ("", WMS, JSDL):
        read_preferences(draft, node)
    elif namespace(node) in SWEEPS and local(node) == "Sweep":
        draft.kept(origin_of(node))
    else:
        draft.impossible(origin_of(node), _UNKNOWN)


def _read_identification(draft: JobDraft, node: XmlNode) -> None:
    for each in children(node):
        if _is(each, "JobName"):
            draft.put("name", word_of_node(each), origin_of(each))
        elif _is(each, "JobProject") and "job_group" not in draft:
            draft.put(
                "job_group",
                word_of_node(each),
                origin_of(each),
                "becomes the job's group; the token says who pays",
            )
        elif _is(each, "JobProject"):
            draft.impossible(origin_of(each), "a second project; a job has one group")
        elif namespace(each) == JSDL and local(each) in ("Description", "JobAnnotation"):
            draft.omitted(origin_of(each), "is for people")
        else:
            draft.impossible(origin_of(each), _NO_ELEMENT if namespace(each) == JSDL else _UNKNOWN)


def _run_staged_program(draft: JobDraft) -> None:
    """If the job's program is one of the staged files, make this file executable and the program `./name`."""
    program = draft.get("executable", "")
    for each in _staged(draft, program):
        each.setdefault("executable", True)
        if "/" not in program:
            draft.update("executable", f"./{program}")


def _staged(draft: JobDraft, program: str) -> Iterator[dict[str, object]]:
    return (
        each for each in draft.get("inputs", ()) if program and each["name"] == program.removeprefix("./")
    )
