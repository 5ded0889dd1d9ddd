"""Mapping scripts and their questions."""

from wms.dispatch.mapping import Kind
from wms.dispatch.mapping_script import (
    MappingScript,
    Outcome,
    ScriptedMapping,
)
from wms.dispatch.port import Request
from wms.provisioning.host_requirements import HostTerm

NAMED: dict[Kind, tuple[str, ...]] = {
    "slurm": ("--constraint", "--gres", "--mem", "--time", "--tmp"),
    "arc": ("runtimeenvironment", "memory"),
    "htcondor": ("requirements", "request_gpus", "request_memory"),
    "pbs": ("-l nodes", "-l mem"),
    "pbspro": ("-l select",),
    "lsf": ("select", "rusage"),
}


SCRATCH, SOFT = HostTerm("scratchmb", ">=", 2_000), HostTerm("soft", "member", "avx512")


def mapping(kind: Kind = "slurm", answers: dict[str, Outcome] | None = None, **own: str) -> ScriptedMapping:
    script = MappingScript(attributes=("ScratchMB", "Soft"), options=NAMED[kind])
    return ScriptedMapping(kind, own, script, {} if answers is None else answers)


def question(it: ScriptedMapping, *bounds: HostTerm, base: Request | None = None) -> str:
    return it.ask(base or Request(), bounds or (SCRATCH, SOFT)).question
