"""Reads the activity description language (ADL) of EMI's execution service (EMI-ES 1.16), which ARC accepts.

Times are in seconds, memory and disk in bytes. Elements in NorduGrid's own namespace are read by their local names too.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from wms.jobdesc.description import MIB
from wms.jobdesc.languages import common_values
from wms.jobdesc.languages import files_of_arc as ours
from wms.jobdesc.languages import hardened_xml as xml
from wms.jobdesc.languages.draft import JobDraft, drafted
from wms.jobdesc.languages.hardened_xml import XmlNode
from wms.jobdesc.languages.translation import Element, Translation, elements_of
from wms.jobdesc.loss_report import LossNotes

NAME: Final = "adl"
ROOT: Final = "ActivityDescription"

Handler: TypeAlias = Callable[[JobDraft, XmlNode], None]


def looks_like(data: bytes) -> bool:
    """Return whether the root element of a document is an activity or a list of activities."""
    return xml.looks_like_xml(data) and xml.root_name(data) in (ROOT, f"{ROOT}s")


def read(data: bytes) -> Translation:
    """Return the translation of an ADL document: one activity, or several below one root.

    Raise InvalidDescription if the document is no XML, or declares a document type. Raise Rejected if the document is too
    large, or makes too many jobs.
    """
    root = xml.parsed(data)
    notes = LossNotes()
    nodes = (
        [root]
        if xml.local(root) == ROOT
        else [each for each in xml.children(root) if xml.local(each) == ROOT]
    )
    return drafted(NAME, [_draft(each, notes) for each in nodes])


def _draft(activity: XmlNode, notes: LossNotes) -> JobDraft:
    draft = JobDraft(notes)
    _group(draft, activity)
    below = [each for node in xml.children(activity) for each in xml.children(node)]
    named = {_word(each, "Name") for each in below if xml.local(each) == "InputFile"}
    ours.send(draft, "executable", named)
    ours.send(draft, "stdin", named)
    ours.times_slots(draft, "memory_mb")
    if "TotalCPUTime" not in map(xml.local, below):
        ours.times_slots(draft, "cpu_time")
    return draft


def _group(draft: JobDraft, node: XmlNode) -> None:
    for child in xml.children(node):
        name = xml.local(child)
        if handler := HANDLERS.get(name):
            handler(draft, child)
        elif name in OMITTED:
            draft.omitted(xml.origin_of(child), OMITTED[name])
        else:
            draft.impossible(xml.origin_of(child), IMPOSSIBLE.get(name, "is not known"))


def _named(node: XmlNode) -> dict[str, XmlNode]:
    """Return the children of an element by their local names. Of several children with one name, it is the first."""
    found = dict[str, XmlNode]()
    for child in xml.children(node):
        found.setdefault(xml.local(child), child)
    return found


def _word(node: XmlNode, name: str) -> str:
    child = _named(node).get(name)
    return "" if child is None else xml.word_of_node(child)


# --- handlers --------------------------------------------------------------------------------------


def _text_into(field: str) -> Handler:
    return lambda draft, node: draft.put(field, xml.word_of_node(node), xml.origin_of(node))


def _number_into(field: str, rounded: Callable[[float], int], sentence: str = "") -> Handler:
    def handler(draft: JobDraft, node: XmlNode) -> None:
        value = common_values.real(xml.word_of_node(node))
        if value is None or not 0 < value < 1e18:
            draft.impossible(xml.origin_of(node), "is no positive number")
        else:
            draft.put(field, rounded(value), xml.origin_of(node), sentence)

    return handler


def _seconds(value: float) -> int:
    return max(1, round(value))


def _mebibytes(value: float) -> int:
    return -int(-value // MIB)


def _executable(draft: JobDraft, node: XmlNode) -> None:
    for child in xml.children(node):
        origin = xml.origin_of(child)
        match xml.local(child):
            case "Path":
                draft.put("executable", xml.word_of_node(child), origin)
            case "Argument":
                draft.append("arguments", xml.text_of_node(child), origin)
            case "FailIfExitCodeNotEqualTo":
                code = common_values.whole_number(xml.word_of_node(child))
                draft.put(
                    "success_exit_codes", [code if code is not None else xml.word_of_node(child)], origin
                )
            case _:
                draft.impossible(origin, "is not known")


def _environment(draft: JobDraft, node: XmlNode) -> None:
    value = _named(node).get("Value")
    said = "" if value is None else xml.text_of_node(value)
    draft.put_item("environment", _word(node, "Name"), said, xml.origin_of(node))


def _runtime_environment(draft: JobDraft, node: XmlNode) -> None:
    name, version = _word(node, "Name"), _word(node, "Version")
    if "Option" in _named(node):
        draft.impossible(xml.origin_of(node), "has options, such as an image: use container")
        return
    if common_values.truth(node.get("optional", "")):
        draft.omitted(xml.origin_of(node), "is optional")
        return
    draft.require(common_values.software(f"{name}-{version}" if version else name), xml.origin_of(node))


def _operating_system(draft: JobDraft, node: XmlNode) -> None:
    attributes = {"Name": "GlueHostOperatingSystemName", "Version": "GlueHostOperatingSystemRelease"}
    terms = [
        common_values.equal(attributes[name], word) for name in attributes if (word := _word(node, name))
    ]
    if _word(node, "Name").lower() == "linux" and len(terms) == 1:
        draft.kept(xml.origin_of(node), "every node runs Linux")
    elif terms:
        draft.require(" && ".join(terms), xml.origin_of(node))
    else:
        draft.impossible(xml.origin_of(node), "names no system")


def _platform(draft: JobDraft, node: XmlNode) -> None:
    name = ours.platform(xml.word_of_node(node))
    term = common_values.equal("GlueHostArchitecturePlatformType", name)
    draft.require(term, xml.origin_of(node))


def _slots(draft: JobDraft, node: XmlNode) -> None:
    for child in xml.children(node):
        match xml.local(child):
            case "NumberOfSlots":
                _number_into("processors", _seconds)(draft, child)
            case "ExclusiveExecution":
                wanted = common_values.truth(xml.word_of_node(child))
                draft.put("whole_node", bool(wanted), xml.origin_of(child))
            case _:
                draft.omitted(xml.origin_of(child), "all processors of a job are of one node")


def _stdin(draft: JobDraft, node: XmlNode) -> None:
    if xml.word_of_node(node) == "/dev/null":
        draft.kept(xml.origin_of(node))
    else:
        draft.put("stdin", xml.word_of_node(node), xml.origin_of(node))


def _queue(draft: JobDraft, node: XmlNode) -> None:
    draft.put("grid_ces", [xml.word_of_node(node)], xml.origin_of(node), "becomes grid_ces")


def _dry_run(draft: JobDraft, node: XmlNode) -> None:
    if common_values.truth(xml.word_of_node(node)) is False:
        draft.kept(xml.origin_of(node))
    else:
        draft.problem(xml.origin_of(node), "asks that nothing be run", "use wms submit --dry-run")


def _type(draft: JobDraft, node: XmlNode) -> None:
    if xml.word_of_node(node) in ("single", "collectionelement", ""):
        draft.kept(xml.origin_of(node))
    else:
        draft.impossible(xml.origin_of(node), "the other activities of its workflow are not in the document")


def _push(draft: JobDraft, node: XmlNode) -> None:
    draft.translated(xml.origin_of(node), "files of the submitter go into the sandbox store first")


def _input_file(draft: JobDraft, node: XmlNode) -> None:
    sources = [_word(each, "URI") for each in xml.children(node) if xml.local(each) == "Source"]
    name, executable = _word(node, "Name"), bool(common_values.truth(_word(node, "IsExecutable")))
    remote = [ours.local_path(each) for each in sources if each]
    if len(remote) > 1:
        said = {"name": name, "sources": remote, "executable": executable}
        draft.append("inputs", said, xml.origin_of(node))
    else:
        draft.add_input(name, remote[0] if remote else name, xml.origin_of(node), executable=executable)


def _output_file(draft: JobDraft, node: XmlNode) -> None:
    targets = [each for each in xml.children(node) if xml.local(each) == "Target"]
    said = [url for each in targets if (url := _word(each, "URI"))]
    urls = [each for each in said if "://" in each and not each.startswith("file:")]
    if said and not urls:
        name = _word(node, "Name").lstrip("/")
        draft.append("output_sandbox", name, xml.origin_of(node), f"comes back as {name} with `wms output`")
        return
    if not urls:
        draft.append("output_sandbox", _word(node, "Name").lstrip("/"), xml.origin_of(node))
        return
    optional = any(common_values.truth(_word(each, "MandatoryFlag")) is False for each in targets)
    draft.append(
        "outputs", {"name": _word(node, "Name"), "targets": urls, "optional": optional}, xml.origin_of(node)
    )


HANDLERS: Final[Mapping[str, Handler]] = {
    **dict.fromkeys(("ActivityIdentification", "Application", "Resources", "DataStaging"), _group),
    "Name": _text_into("name"),
    "Type": _type,
    "Executable": _executable,
    "Input": _stdin,
    "Output": _text_into("stdout"),
    "Error": _text_into("stderr"),
    "Environment": _environment,
    "OperatingSystem": _operating_system,
    "Platform": _platform,
    "RuntimeEnvironment": _runtime_environment,
    "IndividualPhysicalMemory": _number_into("memory_mb", _mebibytes, "becomes memory_mb, times the slots"),
    "DiskSpaceRequirement": _number_into("disk_mb", _mebibytes),
    "TotalCPUTime": _number_into("cpu_time", _seconds),
    "IndividualCPUTime": _number_into("cpu_time", _seconds, "becomes cpu_time, times the slots"),
    "WallTime": _number_into("wall_time", _seconds),
    "SlotRequirement": _slots,
    "QueueName": _queue,
    "ClientDataPush": _push,
    "DryRun": _dry_run,
    "InputFile": _input_file,
    "OutputFile": _output_file,
}
OMITTED: Final = {
    "Description": "is for people",
    "Annotation": "is for people",
    "RemoteLogging": "usage is accounted by the system itself",
    "WipeTime": "results are kept as long as the configuration says",
    "Notification": "nobody is written to; use wms wait",
    "AccessControl": "who may act on a job is decided by groups",
    "CredentialService": "credentials are renewed by the system itself",
    "RemoteSessionAccess": "use wms logs -f",
}
"""The elements that are left out, since the activity is the same without them; each with the reason."""
IMPOSSIBLE: Final = {
    "PreExecutable": "the payload can run other programs itself",
    "PostExecutable": "the payload can run other programs itself",
    "ExpirationTime": "use preferences.latest_start",
    "ParallelEnvironment": "the payload starts its processes itself, such as by mpirun",
    "Coprocessor": "use tags",
    "NetworkInfo": "networks cannot be asked for",
    "NodeAccess": "use requirements",
    "IndividualVirtualMemory": "virtual memory is not limited",
    "Benchmark": "use preferences.benchmarks, with the time that the job takes",
}
"""The elements without which the activity may be another one."""
TOLD: Final[Mapping[str, str]] = {
    "Path": "a relative path is sent along, as ARC does",
    "Argument": "becomes one of `arguments`",
    "FailIfExitCodeNotEqualTo": "becomes `success_exit_codes`",
    "Input": "a relative path is sent along",
    "Platform": "becomes a requirement; `amd64` is `x86_64`",
    "OperatingSystem": "`linux` is any node; others become a requirement",
    "RuntimeEnvironment": "becomes a requirement; left out if it is optional, and refused with options, such as an image",
    "IndividualPhysicalMemory": "becomes `memory_mb`, times the slots",
    "IndividualCPUTime": "becomes `cpu_time`, times the slots",
    "SlotRequirement": "becomes `processors`, all of one node, and `whole_node`",
    "QueueName": "becomes `grid_ces`",
    "Type": "only single activities",
    "DryRun": "is refused",
    "InputFile": "without a source, or with one that is a path or `file://`, the file goes along; others are fetched by URL",
    "OutputFile": "without a target, or with one that is a path or `file://`, the file comes back; others are sent to their URL",
}
"""What becomes of elements that are not kept in the same words."""
ELEMENTS: Final[Mapping[str, Element]] = elements_of(HANDLERS, TOLD, OMITTED, IMPOSSIBLE)
"""Every element of the manual, and what becomes of it."""
