"""Reads the applications of JSDL: POSIX, HPC profile, and SPMD."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from wms.jobdesc.description import MIB
from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.languages.hardened_xml import (
    XmlNode,
    attribute_origin,
    children,
    local,
    namespace,
    origin_of,
    text_of_node,
    word_of_node,
)
from wms.jobdesc.languages.jsdl.file_systems import FileSystems, UnknownFileSystem
from wms.jobdesc.languages.jsdl.namespaces import HPCP, JSDL, POSIX, SPMD
from wms.jobdesc.languages.jsdl.number import is_true, whole

_BLANKS = re.compile(r"[\t\r\n]")
_REMARK = "is for people"
REMARKS: Final = ("ApplicationName", "ApplicationVersion", "Description")
"""The elements of an application beside its program."""
_NO_LIMIT = "a job has no such limit here"
_APPLICATIONS: Final = {
    (POSIX, "POSIXApplication"),
    (SPMD, "SPMDApplication"),
    *((each, "HPCProfileApplication") for each in HPCP),
}


def read_application(draft: JobDraft, node: XmlNode, systems: FileSystems) -> None:
    """Put the content of an Application element into a draft. `systems` resolves paths that name a file system."""
    found = [each for each in children(node) if (namespace(each), local(each)) in _APPLICATIONS]
    for each in children(node):
        if each in found[:1]:
            _read_program(draft, each, systems)
        elif each in found:
            draft.impossible(origin_of(each), "a second application; the first one is run")
        elif (
            namespace(each) == JSDL and local(each) in REMARKS and (found or local(each) != "ApplicationName")
        ):
            draft.omitted(origin_of(each), _REMARK)
        elif namespace(each) == JSDL and local(each) not in REMARKS:
            draft.impossible(origin_of(each), "is no element of JSDL at this place")
        elif namespace(each) == JSDL:
            draft.problem(
                origin_of(each), "names an application without a program", "say which program to run"
            )
        else:
            draft.impossible(origin_of(each), "an extension that is not known here")


def _read_program(draft: JobDraft, node: XmlNode, systems: FileSystems) -> None:
    for name in node.attrib:
        draft.omitted(attribute_origin(node, name), _REMARK)
    for each in children(node):
        read = PARTS.get(local(each))
        if read is None:
            draft.impossible(
                origin_of(each), LEFT_OUT.get(local(each), "an extension that is not known here")
            )
        else:
            read(draft, each, systems)
    if namespace(node) == SPMD:
        _read_processes(draft, node)


def _path(draft: JobDraft, node: XmlNode, systems: FileSystems, text: str) -> tuple[str, str] | None:
    """Return the path that `text` means, relative to the job's directory. With it return a sentence if a file system changed it, else "".

    The element `node` may name the file system. If it names an unknown one, note a problem in the draft and return None.
    """
    system = node.get("filesystemName")
    try:
        path = systems.path(system, text)
    except UnknownFileSystem as fault:
        draft.problem(origin_of(node), str(fault), "give it a FileSystem element with a MountPoint")
        return None
    return path, "" if system is None else f"lies on the file system {system}"


def _executable(draft: JobDraft, node: XmlNode, systems: FileSystems) -> None:
    if found := _path(draft, node, systems, word_of_node(node)):
        draft.put("executable", found[0], origin_of(node), found[1])


def _argument(draft: JobDraft, node: XmlNode, systems: FileSystems) -> None:
    # The HPC profile leaves white space as it is, the other schemas make blanks of it.
    text = text_of_node(node)
    text = text if namespace(node) in HPCP else _BLANKS.sub(" ", text)
    if found := _path(draft, node, systems, text):
        draft.append("arguments", found[0], origin_of(node), found[1])


def _environment(draft: JobDraft, node: XmlNode, systems: FileSystems) -> None:
    name, origin = node.get("name", "").strip(), origin_of(node)
    if name in draft.get("environment", {}):
        draft.impossible(origin, f"{name} is set again; the last value counts")
    if found := _path(draft, node, systems, text_of_node(node)):
        draft.put_item("environment", name, found[0], origin, found[1])


def _stream(field: str) -> Callable[[JobDraft, XmlNode, FileSystems], None]:
    def read(draft: JobDraft, node: XmlNode, systems: FileSystems) -> None:
        if field == "stdin" and word_of_node(node) == "/dev/null":
            draft.kept(origin_of(node))
        elif found := _path(draft, node, systems, word_of_node(node)):
            draft.put(field, found[0], origin_of(node), found[1])

    return read


def _working_directory(draft: JobDraft, node: XmlNode, systems: FileSystems) -> None:
    try:
        path = systems.path(node.get("filesystemName"), word_of_node(node))
    except UnknownFileSystem as fault:
        draft.impossible(origin_of(node), str(fault))
        return
    if path in ("", ".", "./"):
        draft.kept(origin_of(node))
    else:
        draft.impossible(origin_of(node), "each job has a directory of its own, and is run there")


def _seconds(field: str) -> Callable[[JobDraft, XmlNode, FileSystems], None]:
    def read(draft: JobDraft, node: XmlNode, _: FileSystems) -> None:
        try:
            draft.put(field, whole(word_of_node(node)), origin_of(node))
        except ValueError as fault:
            draft.impossible(origin_of(node), str(fault))

    return read


def _memory_limit(draft: JobDraft, node: XmlNode, _: FileSystems) -> None:
    try:
        size = whole(word_of_node(node))
    except ValueError as fault:
        draft.impossible(origin_of(node), str(fault))
        return
    sentence = f"{size:,} bytes are rounded up to MiB" if size % MIB else ""
    draft.put("max_memory_mb", -(-size // MIB), origin_of(node), sentence)


def _known_later(_: JobDraft, __: XmlNode, ___: FileSystems) -> None:
    """Do nothing. The reader of SPMD elements reads this element later, together with the others."""


PARTS: Final[Mapping[str, Callable[[JobDraft, XmlNode, FileSystems], None]]] = {
    "Executable": _executable,
    "Argument": _argument,
    "Environment": _environment,
    "Input": _stream("stdin"),
    "Output": _stream("stdout"),
    "Error": _stream("stderr"),
    "WorkingDirectory": _working_directory,
    "WallTimeLimit": _seconds("wall_time"),
    "CPUTimeLimit": _seconds("cpu_time"),
    "MemoryLimit": _memory_limit,
    **dict.fromkeys(
        ("NumberOfProcesses", "ProcessesPerHost", "ThreadsPerProcess", "SPMDVariation"), _known_later
    ),
}
LEFT_OUT: Final = {
    **dict.fromkeys(
        (
            "FileSizeLimit", "CoreDumpLimit", "DataSegmentLimit", "LockedMemoryLimit", "OpenDescriptorsLimit", "PipeSizeLimit",
            "StackSizeLimit", "ProcessCountLimit", "VirtualMemoryLimit", "ThreadCountLimit",
        ),
        _NO_LIMIT,
    ),
    **dict.fromkeys(("UserName", "GroupName"), "the token says whose job it is"),
}  # fmt: skip


# --- single program, multiple data ---------------------------------------------------------------------------------


def _read_processes(draft: JobDraft, node: XmlNode) -> None:
    parts = {local(each): each for each in children(node) if namespace(each) == SPMD}
    try:
        counts = {name: _count(each) for name, each in parts.items() if name != "SPMDVariation"}
    except ValueError as fault:
        draft.problem(origin_of(node), f"a number of processes {fault}", "say how many")
        return
    processes, threads = counts.get("NumberOfProcesses") or 1, counts.get("ThreadsPerProcess") or 1
    per_host = counts.get("ProcessesPerHost")
    _put_processors(draft, parts, processes * threads)
    if per_host and per_host < processes:
        draft.impossible(
            origin_of(parts["ProcessesPerHost"]), "a job runs on one host, with all its processes"
        )
    elif per_host:
        draft.kept(origin_of(parts["ProcessesPerHost"]))
    if "SPMDVariation" in parts:
        _start_processes(draft, parts["SPMDVariation"], processes)


def _count(node: XmlNode) -> int | None:
    # Empty: as many as the resource has processors, which nobody knows before.
    text = word_of_node(node)
    return whole(text) if text else None


def _put_processors(draft: JobDraft, parts: Mapping[str, XmlNode], processors: int) -> None:
    for name in ("NumberOfProcesses", "ThreadsPerProcess"):
        part = parts.get(name)
        if part is None:
            continue
        actual = any(is_true(value) for value in part.attrib.values())
        if not word_of_node(part) or actual:
            draft.impossible(origin_of(part), "the number of processors is not known before the job starts")
        elif name == "NumberOfProcesses" or "processors" not in draft:
            draft.put("processors", processors, origin_of(part), f"the job gets {processors:,} processors")
        else:
            draft.translated(origin_of(part), f"the job gets {processors:,} processors")


def _start_processes(draft: JobDraft, node: XmlNode, processes: int) -> None:
    program = draft.get("executable", "")
    if "mpi" not in word_of_node(node).rpartition("/")[2].lower() or not program:
        draft.impossible(
            origin_of(node), "the program is started once, and has to start its processes itself"
        )
        return
    start = ["-n", str(processes), program, *draft.get("arguments", ())]
    draft.put(
        "arguments", start, origin_of(node), "the program is started by mpirun, which the site must have"
    )
    draft.put("executable", "mpirun", origin_of(node), "the program is started by mpirun")
