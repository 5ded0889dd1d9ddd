"""Writes JSDL: a description's fields in elements of JSDL where these can express them, and the rest in our extension.

The elements are read back at once. Each field whose value does not come back unchanged goes into the extension. So the
document always reads as an equal description.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from lxml import etree

from wms.errors import Rejected
from wms.jobdesc.array import expand, is_array, jobs_in
from wms.jobdesc.description import MIB, JobDescription
from wms.jobdesc.languages.hardened_xml import XmlNode
from wms.jobdesc.languages.jsdl.definition import translation_of
from wms.jobdesc.languages.jsdl.extension import write_extension
from wms.jobdesc.languages.jsdl.namespaces import FUNCTION, JSDL, POSIX, SWEEP, WMS
from wms.jobdesc.languages.preferences_xml import write_preferences
from wms.jobdesc.languages.translation import WrittenDocument
from wms.jobdesc.loss_report import LossNotes, Origin

SWEEP_LIMIT: Final = 1_000
"""How many jobs an array may have to be written also as a sweep, for other systems. A larger array is in our extension alone."""
PREFIXES: Final = {"jsdl": JSDL, "posix": POSIX, "sweep": SWEEP, "sweepfunc": FUNCTION, "wms": WMS}


def write_jsdl(descriptions: Sequence[JobDescription]) -> WrittenDocument:
    """Return the JSDL document of one description.

    Raise Rejected if there are several descriptions or none (ONE_JOB_A_DOCUMENT): a document has one JobDefinition.
    """
    if len(descriptions) != 1:
        message = f"a JSDL document holds one job or array, not {len(descriptions):,}"
        raise Rejected("ONE_JOB_A_DOCUMENT", message, "write each into a document of its own")
    [description] = descriptions
    root = _document(description)
    said = _fields(description)
    back = _read_back(root)
    beyond = {name: value for name, value in _all_fields(description).items() if back.get(name) != value}
    if beyond:
        root[0].append(write_extension(beyond))
    notes = LossNotes()
    for name in said:
        if name in beyond:
            notes.translated(Origin(name), "in an extension of ours, which other systems do not read")
        else:
            notes.kept(Origin(name))
    etree.indent(root)
    text = etree.tostring(root, encoding="utf-8", xml_declaration=True).decode()
    return WrittenDocument(text=text + "\n", report=notes.report())


def _fields(description: JobDescription) -> Mapping[str, Any]:
    found: Mapping[str, Any] = msgspec.to_builtins(description)
    return found


def _all_fields(description: JobDescription) -> Mapping[str, Any]:
    return {
        name: msgspec.to_builtins(getattr(description, name)) for name in JobDescription.__struct_fields__
    }


def _read_back(root: XmlNode) -> Mapping[str, Any]:
    found = translation_of(etree.fromstring(etree.tostring(root))).descriptions
    return _all_fields(found[0]) if len(found) == 1 else _all_fields(JobDescription(executable=""))


def _document(description: JobDescription) -> XmlNode:
    root = etree.Element(f"{{{JSDL}}}JobDefinition", nsmap=PREFIXES)
    job = _add(root, "JobDescription")
    identification = {"JobName": description.name, "JobProject": description.job_group}
    if said := {name: text for name, text in identification.items() if text and _is_xml(text)}:
        parent = _add(job, "JobIdentification")
        for name, text in said.items():
            _add(parent, name, text)
    _add_application(_add(job, "Application"), description)
    _add_resources(job, description)
    _add_staging(job, description)
    if description.preferences is not None and all(
        _is_xml(each.name) for each in description.preferences.benchmarks
    ):
        root.append(write_preferences(description.preferences, WMS))
    _add_sweep(root, description)
    return root


def _add(parent: XmlNode, name: str, text: str | None = None, space: str = JSDL) -> XmlNode:
    node = etree.SubElement(parent, f"{{{space}}}{name}")
    node.text = text
    return node


def _is_xml(text: str) -> bool:
    """Return whether XML can contain the text. It cannot contain control characters, for example."""
    try:
        etree.Element("a").text = text
    except ValueError:
        return False
    return True


def _is_name(text: str) -> bool:
    try:
        etree.QName(text)
    except ValueError:
        return False
    return True


def _add_application(parent: XmlNode, description: JobDescription) -> None:
    program = _add(parent, "POSIXApplication", space=POSIX)
    texts = [("Executable", description.executable), *(("Argument", each) for each in description.arguments)]
    texts += [("Input", description.stdin), ("Output", description.stdout), ("Error", description.stderr)]
    for name, text in texts:
        if _is_xml(text) and (text or name == "Argument"):
            _add(program, name, text, POSIX)
    for name, text in description.environment.items():
        if _is_xml(text) and _is_name(name):
            _add(program, "Environment", text, POSIX).set("name", name)
    limits = {
        "WallTimeLimit": description.wall_time,
        "MemoryLimit": description.max_memory_mb and description.max_memory_mb * MIB,
        "CPUTimeLimit": description.cpu_time,
    }
    for name, limit in limits.items():
        if limit is not None:
            _add(program, name, str(limit), POSIX)


def _add_resources(job: XmlNode, description: JobDescription) -> None:
    node = etree.Element(f"{{{JSDL}}}Resources")
    if description.grid_ces:
        hosts = _add(node, "CandidateHosts")
        for each in description.grid_ces:
            _add(hosts, "HostName", each)
    if description.whole_node:
        _add(node, "ExclusiveExecution", "true")
    sizes = {
        "IndividualPhysicalMemory": description.memory_mb,
        "IndividualDiskSpace": description.disk_mb,
    }
    for name, size in sizes.items():
        if size is not None:
            _add(_add(node, name), "LowerBoundedRange", str(size * MIB))
    _add_processors(node, description)
    if len(node):
        job.append(node)


def _add_processors(node: XmlNode, description: JobDescription) -> None:
    least, most = description.min_processors, description.max_processors
    if least is None and description.processors != 1:
        _add(_add(node, "TotalCPUCount"), "Exact", str(description.processors))
    elif least is not None and most is None:
        _add(_add(node, "TotalCPUCount"), "LowerBoundedRange", str(least))
    elif least is not None:
        bounds = _add(_add(node, "TotalCPUCount"), "Range")
        _add(bounds, "LowerBound", str(least))
        _add(bounds, "UpperBound", str(most))


def _add_staging(job: XmlNode, description: JobDescription) -> None:
    for each in description.inputs:
        said = {"size": each.size, "checksum": each.checksum, "executable": each.executable}
        _add_file(job, "Source", each.name, each.sources, said)
    for target in description.outputs:
        _add_file(job, "Target", target.name, target.targets, {"optional": target.optional})


def _add_file(
    job: XmlNode, direction: str, name: str, addresses: Sequence[str], said: Mapping[str, Any]
) -> None:
    if not all(map(_is_xml, (name, *addresses))):
        return
    node = _add(job, "DataStaging")
    for key, value in said.items():
        if value not in (None, ""):
            node.set(f"{{{WMS}}}{key}", str(value).lower() if isinstance(value, bool) else str(value))
    _add(node, "FileName", name)
    _add(node, "CreationFlag", "overwrite")
    end = _add(node, direction)
    for place, address in enumerate(addresses):
        _add(end, "Replica" if place else "URI", address, WMS if place else JSDL)


def _add_sweep(root: XmlNode, description: JobDescription) -> None:
    """Add the parameter values of a small array as a sweep, for other systems. This system reads the values from the extension."""
    jobs = jobs_in(description)
    if not is_array(description) or jobs > SWEEP_LIMIT or description.input_parameters:
        return
    expanded = [expand(description, index) for index in range(jobs)]
    lists = {
        f"//posix:Argument[{place}]": [each.arguments[place - 1] for each in expanded]
        for place in range(1, len(description.arguments) + 1)
    }
    lists |= {
        f"//posix:Environment[@name='{name}']": [each.environment[name] for each in expanded]
        for name in description.environment
    }
    varied = {path: values for path, values in lists.items() if len(set(values)) > 1}
    if not varied or not all(_is_xml(value) for values in varied.values() for value in values):
        return
    sweep = _add(root, "Sweep", space=SWEEP)
    for path, values in varied.items():
        assignment = _add(sweep, "Assignment", space=SWEEP)
        _add(assignment, "Parameter", path, SWEEP)
        node = _add(assignment, "Values", space=FUNCTION)
        for value in values:
            _add(node, "Value", value, FUNCTION)
