"""The expressions of submit files: `requirements` and `rank` over the ad of a machine, put into words of our ads.

What every pilot of ours has (Linux) is true and drops out. Attributes that our ads lack make an expression that cannot be carried out.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec.structs import replace

from wms.classad.expression import Expression
from wms.classad.folding import fold
from wms.classad.tree import (
    Binary,
    Call,
    Chain,
    Literal,
    NameScope,
    Node,
    Reference,
    Unary,
    chain,
    references,
    with_children,
)
from wms.classad.writing import write
from wms.errors import Rejected
from wms.jobdesc.languages.condor_job import CondorJob, origin_of
from wms.jobdesc.languages.condor_text import Command

_ATTRIBUTES: Final[Mapping[str, str]] = {
    "arch": "GlueHostArchitecturePlatformType",
    "machine": "GlueHostName",
    "memory": "MaxRAM",
    "totalmemory": "GlueHostMainMemoryRAMSize",
    "cpus": "NumberOfProcessors",
    "totalcpus": "GlueHostArchitectureSMPSize",
    "gpus": "GPUNumber",
    "totalgpus": "GPUNumber",
    "detectedgpus": "GPUNumber",
    "cudadriverversion": "GPUCudaVersion",
    "gpus_driverversion": "GPUCudaVersion",
    "cudadevicename": "GPUName",
    "gpus_devicename": "GPUName",
    "detectedcpus": "GlueHostArchitectureSMPSize",
    "detectedmemory": "GlueHostMainMemoryRAMSize",
    "glidein_site": "Site",
    "glidein_cms_site": "Site",
}
"""The attributes of our resources by those of HTCondor's machines that mean the same, in lower case."""
_LEAST: Final[Mapping[str, str]] = {
    "cudacapability": "GPUCapability",
    "gpus_capability": "GPUCapability",
    "cudaglobalmemorymb": "GPUMemory",
    "gpus_globalmemorymb": "GPUMemory",
}
"""What a node tells of its GPUs is the least that all of them have. So it shows lower bounds alone."""
_VALUES: Final = {"x86_64": "x86_64", "aarch64": "aarch64", "ppc64le": "ppc64le", "arm64": "aarch64"}
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "almalinux": ("AlmaLinux",),
    "centos": ("CentOS Linux", "CentOS Stream"),
    "debian": ("Debian GNU/Linux",),
    "fedora": ("Fedora Linux", "Fedora"),
    "redhat": ("Red Hat Enterprise Linux", "Red Hat Enterprise Linux Server"),
    "rocky": ("Rocky Linux",),
    "ubuntu": ("Ubuntu",),
}
"""The names of systems as their os-release files tell them, by those of HTCondor in lower case."""
_SYSTEM: Final = Reference(NameScope.OTHER, "GlueHostOperatingSystemName")
_MAJOR: Final = Call("int", (Reference(NameScope.OTHER, "GlueHostOperatingSystemRelease"),))
_CONTAINERS: Final = Call(
    "regexp", (Literal("apptainer|singularity"), Reference(NameScope.OTHER, "WMSContainers"), Literal("i"))
)
_OWN: Final = {"requestcpus": "processors", "requestmemory": "memory_mb"}
_MEASURED: Final[Mapping[str, Node]] = {
    "opsysmajorver": _MAJOR,
    "hassingularity": _CONTAINERS,
    "has_singularity": _CONTAINERS,
}
_ENGINES: Final = ("hasdocker", "hassingularity", "has_singularity")
"""What machines with a program for containers say. A job in an image is given to such nodes in any case."""
_COMPARISONS: Final = ("==", "!=", "=?=", "=!=", "is", "isnt")


class _ForeignError(Exception):
    """An attribute that our ads do not have."""


def requirements(job: CondorJob, command: Command) -> None:
    """Add the requirements to the draft, in words of our ads."""
    try:
        found = fold(_ours(Expression.parse(command.value).tree, job))
    except Rejected as fault:
        job.draft.problem(origin_of(command), f"is no expression: {fault.message}")
    except _ForeignError as fault:
        job.draft.impossible(origin_of(command), f"asks for {fault}, which resources here do not tell")
    else:
        if isinstance(found, Literal) and found.value is True:
            job.draft.kept(origin_of(command), "holds on every resource")
        else:
            job.draft.require(write(found), origin_of(command))


def gpu_requirements(job: CondorJob, command: Command) -> None:
    """Add the requirements on each GPU to the draft. Attributes of a GPU have the names of a machine's without their prefix."""
    try:
        found = _of_machine(Expression.parse(command.value).tree)
    except Rejected as fault:
        job.draft.problem(origin_of(command), f"is no expression: {fault.message}")
    else:
        requirements(job, replace(command, value=write(found)))


def _of_machine(node: Node) -> Node:
    if isinstance(node, Reference):
        return Reference(NameScope.OTHER, f"GPUs_{node.name}")
    return with_children(node, _of_machine)


def rank(job: CondorJob, command: Command) -> None:
    """Put the rank into the draft, in words of our ads. One that cannot be put so is omitted: any machine will do."""
    try:
        found = write(_ours(Expression.parse(command.value).tree, job))
    except (Rejected, _ForeignError) as fault:
        job.draft.omitted(origin_of(command), f"prefers machines by what resources here do not tell: {fault}")
    else:
        job.draft.put("rank", found, origin_of(command), f"becomes {found}")


def _ours(node: Node, job: CondorJob) -> Node:
    if (bound := _at_least(node)) is not None:
        return bound
    if isinstance(node, Binary) and node.operator in _COMPARISONS:
        for one, other in ((node.left, node.right), (node.right, node.left)):
            if isinstance(one, Reference) and isinstance(other, Literal) and isinstance(other.value, str):
                return _compared(node, one, other.value, job)
    if isinstance(node, Reference):
        return _reference(node, job)
    if not isinstance(node, Chain) and (wanted := _of_gpus(node)):
        raise _ForeignError(f"another bound on {min(wanted)} than a lower one")
    return with_children(node, _with(job))


def _of_gpus(node: Node) -> AbstractSet[str]:
    return _LEAST.keys() & (references(node, NameScope.BARE) | references(node, NameScope.OTHER))


def _at_least(node: Node) -> Node | None:
    """Return a lower bound on the GPUs of a node, in our words; None if the expression is none."""
    match node:
        case Binary(operator=">=" | ">", left=Reference() as one, right=Literal()) if one.key in _LEAST:
            return Binary(node.operator, Reference(NameScope.OTHER, _LEAST[one.key]), node.right)
        case Binary(operator="<=" | "<", left=Literal(), right=Reference() as one) if one.key in _LEAST:
            return Binary(node.operator, node.left, Reference(NameScope.OTHER, _LEAST[one.key]))
    return None


def _with(job: CondorJob) -> Callable[[Node], Node]:
    return lambda node: _ours(node, job)


def _compared(node: Binary, one: Reference, text: str, job: CondorJob) -> Node:
    """Return the comparison of an attribute with a text. Every pilot runs on Linux; architectures have the kernel's names."""
    key, is_equal = one.key, node.operator in ("==", "=?=", "is")
    if one.scope is not NameScope.OWN and key in ("opsys", "opsyslegacy"):
        return Literal((text.lower() == "linux") is is_equal)
    if one.scope is not NameScope.OWN and key in ("opsysname", "opsysandver"):
        found = _system(text, with_version=key == "opsysandver")
        return found if is_equal else Unary("!", found)
    if key == "arch":
        known = _VALUES.get(text.lower())
        if known is None:
            raise _ForeignError(f'Arch "{text[:40]}"')
        return Binary("==" if is_equal else "!=", _reference(one, job), Literal(known))
    return Binary("==" if is_equal else "!=", _reference(one, job), Literal(text))


def _system(text: str, *, with_version: bool) -> Node:
    """Return the condition that the system has a name, and perhaps a major version: `AlmaLinux9`."""
    name = text.rstrip("0123456789") if with_version else text
    known, version = _NAMES.get(name.lower()), text[len(name) :]
    if known is None or with_version is not bool(version):
        raise _ForeignError(f'the system "{text[:40]}"')
    named = chain("||", [Binary("==", _SYSTEM, Literal(each)) for each in known])
    return chain("&&", [named, Binary("==", _MAJOR, Literal(int(version)))]) if with_version else named


def _reference(node: Reference, job: CondorJob) -> Node:
    if node.scope is not NameScope.OWN and node.key in _ENGINES and job.is_in_container():
        return Literal(True)
    if node.scope is not NameScope.OWN and node.key in _MEASURED:
        return _MEASURED[node.key]
    if node.scope is not NameScope.OTHER and node.key in _OWN:
        value = job.draft.get(_OWN[node.key], 1 if node.key == "requestcpus" else None)
        if isinstance(value, int):
            return Literal(value)
    if node.scope is NameScope.OWN or node.key not in _ATTRIBUTES:
        raise _ForeignError(node.name)
    return Reference(NameScope.OTHER, _ATTRIBUTES[node.key])


def shown_attributes() -> Mapping[str, str]:
    """Return what is said in place of each attribute of HTCondor's machines, for the guide."""
    plain = {name: f"other.{ours}" for name, ours in {**_ATTRIBUTES, **_LEAST}.items()}
    return {**plain, **{name: write(node) for name, node in _MEASURED.items()}}
