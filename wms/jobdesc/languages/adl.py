"""Reads the activity description language (ADL) of EMI's execution service (EMI-ES 1.16), which ARC accepts.

Times are in seconds, memory and disk in bytes. Elements in NorduGrid's own namespace are read by their local names too.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from wms.jobdesc.description import MIB
from wms.jobdesc.languages import common_values
from wms.jobdesc.languages import hardened_xml as xml
from wms.jobdesc.languages.draft import JobDraft, drafted
from wms.jobdesc.languages.hardened_xml import XmlNode
from wms.jobdesc.languages.translation import Translation
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
    return draft


def _group(draft: JobDraft, node: XmlNode) -> None:
    for child in xml.children(node):
        name = xml.local(child)
        if handler := _HANDLERS.get(name):
            handler(draft, child)
        else:
            draft.impossible(xml.origin_of(child), _NO_MEANING.get(name, "is not known"))


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


def _number_into(field: str, ours: Callable[[float], int], sentence: str = "") -> Handler:
    def handler(draft: JobDraft, node: XmlNode) -> None:
        value = common_values.real(xml.word_of_node(node))
        if value is None or not 0 < value < 1e18:
            draft.impossible(xml.origin_of(node), "is no positive number")
        else:
            draft.put(field, ours(value), xml.origin_of(node), sentence)

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
    draft.require(common_values.software(f"{name}-{version}" if version else name), xml.origin_of(node))


def _operating_system(draft: JobDraft, node: XmlNode) -> None:
    attributes = {"Name": "GlueHostOperatingSystemName", "Version": "GlueHostOperatingSystemRelease"}
    terms = [
        common_values.equal(attributes[name], word) for name in attributes if (word := _word(node, name))
    ]
    if terms:
        draft.require(" && ".join(terms), xml.origin_of(node))
    else:
        draft.impossible(xml.origin_of(node), "names no system")


def _platform(draft: JobDraft, node: XmlNode) -> None:
    term = common_values.equal("GlueHostArchitecturePlatformType", xml.word_of_node(node))
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
                draft.impossible(xml.origin_of(child), "all processors of a job are of one node")


def _queue(draft: JobDraft, node: XmlNode) -> None:
    draft.put("grid_ces", [xml.word_of_node(node)], xml.origin_of(node), "becomes grid_ces")


def _annotation(draft: JobDraft, node: XmlNode) -> None:
    draft.translated(xml.origin_of(node), "is for people, and not kept")


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
    remote = [each for each in sources if each]
    if len(remote) > 1:
        said = {"name": name, "sources": remote, "executable": executable}
        draft.append("inputs", said, xml.origin_of(node))
    else:
        draft.add_input(name, remote[0] if remote else name, xml.origin_of(node), executable=executable)


def _output_file(draft: JobDraft, node: XmlNode) -> None:
    targets = [each for each in xml.children(node) if xml.local(each) == "Target"]
    urls = [url for each in targets if (url := _word(each, "URI"))]
    if not urls:
        draft.append("output_sandbox", _word(node, "Name").lstrip("/"), xml.origin_of(node))
        return
    optional = any(common_values.truth(_word(each, "MandatoryFlag")) is False for each in targets)
    said = {"name": _word(node, "Name"), "targets": urls, "optional": optional}
    draft.append("outputs", said, xml.origin_of(node))


_HANDLERS: Final[Mapping[str, Handler]] = {
    **dict.fromkeys(("ActivityIdentification", "Application", "Resources", "DataStaging"), _group),
    "Name": _text_into("name"),
    "Description": _annotation,
    "Annotation": _annotation,
    "Type": _type,
    "Executable": _executable,
    "Input": _text_into("stdin"),
    "Output": _text_into("stdout"),
    "Error": _text_into("stderr"),
    "Environment": _environment,
    "OperatingSystem": _operating_system,
    "Platform": _platform,
    "RuntimeEnvironment": _runtime_environment,
    "IndividualPhysicalMemory": _number_into("memory_mb", _mebibytes, "becomes memory_mb, of the whole job"),
    "DiskSpaceRequirement": _number_into("disk_mb", _mebibytes),
    "TotalCPUTime": _number_into("cpu_time", _seconds),
    "IndividualCPUTime": _number_into("cpu_time", _seconds, "becomes cpu_time, of all processors together"),
    "WallTime": _number_into("wall_time", _seconds),
    "SlotRequirement": _slots,
    "QueueName": _queue,
    "ClientDataPush": _push,
    "InputFile": _input_file,
    "OutputFile": _output_file,
}
_NO_MEANING: Final = {
    "PreExecutable": "the payload can run other programs itself",
    "PostExecutable": "the payload can run other programs itself",
    "RemoteLogging": "usage is accounted by the system itself",
    "ExpirationTime": "use preferences.latest_start",
    "WipeTime": "results are kept as long as the configuration says",
    "Notification": "nobody is written to; use wms wait",
    "DryRun": "use wms submit --dry-run",
    "AccessControl": "who may act on a job is decided by groups",
    "ParallelEnvironment": "the payload starts its processes itself, such as by mpirun",
    "Coprocessor": "use tags",
    "NetworkInfo": "networks cannot be asked for",
    "NodeAccess": "use requirements",
    "IndividualVirtualMemory": "virtual memory is not limited",
    "RemoteSessionAccess": "use wms logs -f",
    "Benchmark": "use preferences.benchmarks, with the time that the job takes",
    "CredentialService": "credentials are renewed by the system itself",
}
