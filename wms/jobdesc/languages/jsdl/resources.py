"""Reads the Resources element of JSDL: what a job requires of the machine where it runs."""

import math
from collections.abc import Callable, Mapping
from typing import Final

from wms.jobdesc.description import MIB
from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.languages.hardened_xml import XmlNode, children, local, namespace, origin_of, word_of_node
from wms.jobdesc.languages.jsdl.file_systems import FileSystems
from wms.jobdesc.languages.jsdl.namespaces import JSDL
from wms.jobdesc.languages.jsdl.number import is_true
from wms.jobdesc.languages.jsdl.range_value import ValueRange, range_of

_NOT_KNOWN = "no resource tells this"


def file_systems(node: XmlNode | None) -> FileSystems:
    """Return the file systems that a Resources element describes. If `node` is None, return only the predefined ones."""
    mounts = dict[str, str]()
    for each in () if node is None else children(node):
        if local(each) == "FileSystem" and namespace(each) == JSDL:
            mounts[each.get("name", "").strip()] = next(
                (word_of_node(part) for part in children(each) if local(part) == "MountPoint"), ""
            )
    return FileSystems(mounts)


def read_resources(draft: JobDraft, node: XmlNode) -> None:
    """Put the content of a Resources element into a draft. Malformed and unsupported elements are noted as impossible."""
    parts = sorted(children(node), key=lambda each: _ORDER.get(local(each), 0))
    for each in parts:
        read = PARTS.get(local(each)) if namespace(each) == JSDL else None
        if read is None:
            draft.impossible(origin_of(each), _NOT_KNOWN)
            continue
        try:
            read(draft, each)
        except ValueError as fault:
            draft.impossible(origin_of(each), str(fault))


def _candidate_hosts(draft: JobDraft, node: XmlNode) -> None:
    for each in children(node):
        if local(each) != "HostName":
            draft.impossible(origin_of(each), _NOT_KNOWN)
            continue
        draft.append("grid_ces", word_of_node(each), origin_of(each), "names a computing element")


def _exclusive(draft: JobDraft, node: XmlNode) -> None:
    draft.put("whole_node", is_true(word_of_node(node)), origin_of(node))


def _operating_system(draft: JobDraft, node: XmlNode) -> None:
    for each in node.iter():
        match local(each):
            case "OperatingSystemName" if word_of_node(each) == "LINUX":
                draft.kept(origin_of(each))
            case "OperatingSystemName":
                _require(draft, each, "GlueHostOperatingSystemName")
            case "OperatingSystemVersion":
                _require(draft, each, "GlueHostOperatingSystemRelease")
            case "Description":
                draft.translated(origin_of(each), "a remark for people; it changes nothing of the job")
            case name if name not in ("OperatingSystem", "OperatingSystemType"):
                draft.impossible(origin_of(each), _NOT_KNOWN)


def _architecture(draft: JobDraft, node: XmlNode) -> None:
    for each in children(node):
        if local(each) != "CPUArchitectureName" or word_of_node(each) == "other":
            draft.impossible(origin_of(each), _NOT_KNOWN)
        else:
            _require(draft, each, "GlueHostArchitecturePlatformType")


def _require(draft: JobDraft, node: XmlNode, attribute: str) -> None:
    text = word_of_node(node)
    if not text.isprintable() or '"' in text or "\\" in text or len(text) > 200:
        raise ValueError("is no plain word")
    draft.require(f'other.{attribute} == "{text}"', origin_of(node))


def _file_system(draft: JobDraft, node: XmlNode) -> None:
    for each in children(node):
        match local(each):
            case "DiskSpace":
                _disk(draft, each)
            case "MountPoint":
                draft.translated(origin_of(each), "stands before the paths on this file system")
            case "Description":
                draft.translated(origin_of(each), "a remark for people; it changes nothing of the job")
            case "FileSystemType" if word_of_node(each) in ("normal", "temporary", "spool"):
                draft.translated(
                    origin_of(each), "its files lie in the job's directory, or where it is mounted"
                )
            case _:
                draft.impossible(origin_of(each), _NOT_KNOWN)


def _disk(draft: JobDraft, node: XmlNode) -> None:
    _at_least(draft, "disk_mb", node)


def _memory(draft: JobDraft, node: XmlNode) -> None:
    _at_least(draft, "memory_mb", node)


def _at_least(draft: JobDraft, field: str, node: XmlNode) -> None:
    """Put the lower bound of a range of bytes into a field in MiB, rounded up, unless the field has a greater value already.

    An upper bound alone is noted as impossible.
    """
    found = range_of(node)
    if found.is_open:
        draft.kept(origin_of(node), "asks for nothing")
    elif found.least is None or found.least <= 0:
        draft.impossible(origin_of(node), "an upper bound alone: a resource with more would do as well")
    else:
        size = math.ceil(found.least / MIB)
        sentence = (
            "" if size * MIB == found.least and found.most is None else f"at least {size:,} MiB are asked for"
        )
        draft.put(field, max(size, draft.get(field) or 0), origin_of(node), sentence)


def _virtual_memory(draft: JobDraft, node: XmlNode) -> None:
    _require_range(draft, node, "GlueHostMainMemoryVirtualSize", MIB)


def _speed(draft: JobDraft, node: XmlNode) -> None:
    _require_range(draft, node, "GlueHostProcessorClockSpeed", 1_000_000)


def _require_range(draft: JobDraft, node: XmlNode, attribute: str, unit: int) -> None:
    found = range_of(node)
    if found.is_open:
        draft.kept(origin_of(node), "asks for nothing")
    if found.least is not None:
        draft.require(f"other.{attribute} >= {math.floor(found.least / unit)}", origin_of(node))
    if found.most is not None:
        draft.require(f"other.{attribute} <= {math.ceil(found.most / unit)}", origin_of(node))


def _total_cpus(draft: JobDraft, node: XmlNode) -> None:
    _put_cpus(draft, node, range_of(node))


def _individual_cpus(draft: JobDraft, node: XmlNode) -> None:
    if "processors" in draft or "min_processors" in draft:
        draft.translated(origin_of(node), "the total number of processors counts")
    else:
        _put_cpus(draft, node, range_of(node))


def _put_cpus(draft: JobDraft, node: XmlNode, found: ValueRange) -> None:
    origin = origin_of(node)
    if found.is_open:
        draft.kept(origin, "asks for nothing")
    elif found.exact is not None:
        draft.put("processors", math.ceil(found.exact), origin)
    elif "processors" in draft:
        draft.translated(origin, "the number of processes counts")
    else:
        draft.put("min_processors", max(1, math.ceil(found.least or 1)), origin)
        if found.most is not None:
            draft.put("max_processors", math.floor(found.most), origin)


def _cpu_time(draft: JobDraft, node: XmlNode) -> None:
    _put_cpu_time(draft, node, 1)


def _individual_cpu_time(draft: JobDraft, node: XmlNode) -> None:
    _put_cpu_time(draft, node, draft.get("processors") or draft.get("min_processors") or 1)


def _put_cpu_time(draft: JobDraft, node: XmlNode, processors: int) -> None:
    found = range_of(node)
    seconds = found.most if found.least is None else found.least
    if seconds is None:
        draft.kept(origin_of(node), "asks for nothing")
        return
    total = math.ceil(seconds) * processors
    draft.put(
        "cpu_time",
        max(total, draft.get("cpu_time") or 0),
        origin_of(node),
        f"{total:,} seconds of all processors together",
    )


def _resource_count(draft: JobDraft, node: XmlNode) -> None:
    least = range_of(node).least
    if least is not None and least > 1:
        draft.impossible(origin_of(node), "a job runs on one resource")
    else:
        draft.kept(origin_of(node))


def _bandwidth(draft: JobDraft, node: XmlNode) -> None:
    draft.impossible(origin_of(node), _NOT_KNOWN)


PARTS: Final[Mapping[str, Callable[[JobDraft, XmlNode], None]]] = {
    "CandidateHosts": _candidate_hosts,
    "FileSystem": _file_system,
    "ExclusiveExecution": _exclusive,
    "OperatingSystem": _operating_system,
    "CPUArchitecture": _architecture,
    "IndividualCPUSpeed": _speed,
    "IndividualCPUTime": _individual_cpu_time,
    "IndividualCPUCount": _individual_cpus,
    "IndividualNetworkBandwidth": _bandwidth,
    "IndividualPhysicalMemory": _memory,
    "IndividualVirtualMemory": _virtual_memory,
    "IndividualDiskSpace": _disk,
    "TotalCPUTime": _cpu_time,
    "TotalCPUCount": _total_cpus,
    "TotalPhysicalMemory": _memory,
    "TotalVirtualMemory": _virtual_memory,
    "TotalDiskSpace": _disk,
    "TotalResourceCount": _resource_count,
}
_ORDER: Final = {"TotalCPUCount": -2, "IndividualCPUCount": -1}
"""The order in which elements are read, lowest first; others have 0. The times of each processor are multiplied by these counts."""
