"""Reads the data staging of JSDL: files by URL, fetched before the job and sent after it."""

from collections.abc import Iterable
from typing import Any, Final

from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.languages.hardened_xml import (
    XmlNode,
    attribute_origin,
    children,
    local,
    namespace,
    origin_of,
    word_of_node,
)
from wms.jobdesc.languages.jsdl.file_systems import FileSystems, UnknownFileSystem
from wms.jobdesc.languages.jsdl.namespaces import JSDL, WMS
from wms.jobdesc.languages.jsdl.number import is_true, whole

_UNKNOWN = "an extension that is not known here"
PARTS: Final = ("FileName", "FilesystemName", "CreationFlag", "DeleteOnTermination", "Source", "Target")
"""The elements of a DataStaging element."""
ATTRIBUTES: Final = ("size", "checksum", "executable", "optional")
"""The attributes in our namespace that this system adds to a DataStaging element."""


def read_staging(draft: JobDraft, node: XmlNode, systems: FileSystems) -> None:
    """Put the file of a DataStaging element into a draft, as input, output or both. `systems` resolves a path that names a file system."""
    parts = {local(each): each for each in children(node) if namespace(each) == JSDL}
    for each in children(node):
        if namespace(each) != JSDL or local(each) not in PARTS:
            draft.impossible(origin_of(each), _UNKNOWN)
    _check_attributes(draft, node)
    name = _name(draft, parts, systems)
    if name is None:
        return
    _check_removal(draft, parts.get("DeleteOnTermination"))
    _check_creation(draft, parts)
    if "Source" in parts:
        _put_input(draft, node, parts["Source"], name)
    if "Target" in parts:
        _put_output(draft, node, parts["Target"], name)


def _check_attributes(draft: JobDraft, node: XmlNode) -> None:
    for name in node.attrib:
        if name == "name":
            draft.translated(attribute_origin(node, name), "a name within the document alone")
        elif name not in [_own(each) for each in ATTRIBUTES]:
            draft.impossible(attribute_origin(node, name), _UNKNOWN)


def _own(name: str) -> str:
    return f"{{{WMS}}}{name}"


def _name(draft: JobDraft, parts: dict[str, XmlNode], systems: FileSystems) -> str | None:
    named = parts.get("FileName")
    system = parts.get("FilesystemName")
    if named is None:
        return ""
    try:
        path = systems.path(None if system is None else word_of_node(system), word_of_node(named))
    except UnknownFileSystem as fault:
        draft.problem(origin_of(named), str(fault), "give it a FileSystem element with a MountPoint")
        return None
    if system is not None:
        draft.translated(origin_of(system), "stands in the path of the file")
    return path


def _check_removal(draft: JobDraft, node: XmlNode | None) -> None:
    if node is None:
        return
    if is_true(word_of_node(node)):
        draft.kept(origin_of(node))
    else:
        draft.impossible(origin_of(node), "the job's directory is removed after its end, with all files")


def _check_creation(draft: JobDraft, parts: dict[str, XmlNode]) -> None:
    flag = parts.get("CreationFlag")
    if flag is None:
        return
    if word_of_node(flag) == "append":
        draft.impossible(origin_of(flag), "files are written anew; nothing is appended")
    elif word_of_node(flag) == "dontOverwrite" and "Target" in parts:
        draft.impossible(origin_of(flag), "files at their targets are overwritten")
    else:
        draft.kept(origin_of(flag))


def _addresses(draft: JobDraft, node: XmlNode) -> list[str]:
    found = list[str]()
    for each in children(node):
        if (namespace(each), local(each)) in ((JSDL, "URI"), (WMS, "Replica")):
            found.append(word_of_node(each))
        else:
            draft.impossible(origin_of(each), _UNKNOWN)
    return found


def _put_input(draft: JobDraft, node: XmlNode, source: XmlNode, name: str) -> None:
    addresses = _addresses(draft, source)
    if not addresses:
        draft.translated(origin_of(source), "has no URI, so nothing is fetched")
        return
    _append(draft, "inputs", {"name": name, "sources": addresses, **_said(node, ATTRIBUTES[:3])}, node)


def _put_output(draft: JobDraft, node: XmlNode, target: XmlNode, name: str) -> None:
    addresses = _addresses(draft, target)
    if addresses:
        _append(draft, "outputs", {"name": name, "targets": addresses, **_said(node, ATTRIBUTES[3:])}, node)
    else:
        draft.append("output_sandbox", name, origin_of(target), "has no URI, so the file is kept as output")


def _append(draft: JobDraft, field: str, file: dict[str, Any], node: XmlNode) -> None:
    before = [each for each in draft.get(field, ()) if each["name"] == file["name"]]
    if before and field == "inputs":
        # The file that comes last is the one that is there when the job starts.
        before[0].update(file)
        draft.translated(origin_of(node), "the file is staged again; the last source counts")
    elif before:
        key = "targets"
        before[0][key] = [*before[0][key], *file[key]]
        draft.translated(origin_of(node), "another target of the same file")
    else:
        draft.append(field, file, origin_of(node))


def _said(node: XmlNode, names: Iterable[str]) -> dict[str, Any]:
    given = {name: node.get(_own(name)) for name in names if node.get(_own(name)) is not None}
    return {name: _attribute(name, value) for name, value in given.items()}


def _attribute(name: str, value: str) -> Any:
    if name == "checksum":
        return value
    if name != "size":
        return is_true(value)
    try:
        return whole(value)
    except ValueError:
        return value
