"""Which answers of submit tools say for certain that a batch system did not take a job.

A submit tool that fails may have submitted the job nevertheless: the request arrived, and its answer was lost. So an error counts as
unknown unless its text is one of the clear refusals below. `follow` then finds the job by its name, or finds that there is none.

The texts are the batch systems' own: `slurm_strerror`, `lsb_errmsg`, `pbs_errno`, and the messages of `condor_submit`.
"""

import re
from collections.abc import Mapping
from typing import Final, NoReturn

from wms.dispatch.commands import ToolOutput
from wms.errors import Unavailable


class SubmitRefused(Exception):  # noqa: N818 - the batch system's answer, no fault of ours
    """The batch system refuses to take a job; the text says why."""


_OPTIONS: Final = (
    r"(unrecognized|unknown|invalid|illegal) option",
    r"option .{0,40} (requires an argument|is ambiguous|cannot be used)",
)
"""What a tool says of its own options, before it asks the batch system."""

_SLURM: Final = (
    r"invalid (partition name|account|(preferred |cluster )?feature|qos|license|wckey|generic resource|gres|mcs_label|trackable)",
    r"invalid (burst ?buffer|memory|core|count|time|job ?array|user id|group id|number of|argument|directive found|--[a-z-]+)",
    r"no partition specified",
    r"access/permission denied",
    r"user's group not permitted",
    r"requested nodes not in this partition",
    r"more processors requested than permitted",
    r"(node|task|cpu) count (specification|per node).{0,40}(invalid|satisfied)",
    r"requested (node|partition) configuration (is )?not available",
    r"job size specification needs",
    r"memory (required by task is not available|specification can not be satisfied)",
    r"job violates accounting/qos policy",
    r"requested time limit is invalid",
    r"access denied to requested reservation",
    r"requested reservation (is invalid|is in use|not usable)",
    r"(required node|required partition) not available",
    r"requested account has breached",
    r"partition in down state",
    r"system submissions disabled",
    r"requested more tasks than available",
    r"insufficient gres available",
    r"requested (gres option unsupported|operation not supported|operation is presently disabled)",
    r"duplicate generic resource",
    r"cannot request more threads per core",
    r"(pathname|comment) .{0,60}too long",
    r"cli_filter plugin terminated with error",
)
_LSF: Final = (
    r"bad resource requirement syntax|bad host specification|bad host name|bad queue name",
    r"no such queue|queue does not exist|queue has been closed|queue (is )?not activated",
    r"user cannot use the queue|user permission denied|root job submission is disabled",
    r"cannot exceed queue's hard limit|cannot use the queue",
    r"too many processors requested|job violates the limits? of the queue",
    r"user's pending job .{0,30}(limit|threshold) reached",
    r"queue does not accept|queue only accepts",
    r"(application|service class|user group|project|license project|reservation|job group|resource) .{0,80}(does not exist|not found|is not defined|is invalid)",
    r"request aborted by esub",
    r"user .{0,60}is not a member|does not belong to",
)
_PBS: Final = (
    r"unknown queue|no default queue|queue is not enabled",
    r"unauthorized request|access from host not allowed",
    r"unknown resource|illegal attribute or resource|undefined attribute|cannot set attribute",
    r"job (exceeds|violates) queue|job exceeds .{0,40}limits?|would exceed .{0,80}limit|resource limit exceeds",
    r"maximum number of jobs already in queue",
    r"job rejected by all possible destinations",
    r"bad (uid|gid|account|group|interactive)|invalid account",
    r"illegal -\S+ value|usage: qsub",
    r"rejected by (filter|hook)|request rejected by",
    r"job violates the limits? of the queue",
    r"cannot locate feasible nodes|(qsub) cannot access script file",
)
_CONDOR: Final = (
    r"failed to parse command file|failed to parse -a argument|on line \d+ of submit file|parse error",
    r"doesn't contain any .{0,3}queue.{0,3} commands",
    r"(invalid|illegal) (value|command|attribute|expression|universe)|unknown universe",
    r"would exceed max_jobs_|maximum number of jobs",
    # The schedd's own reason follows: a requirement of the pool that the job does not meet.
    r"failed to commit job submission into the queue\.\s+error: (?!.*(connect|communicat|timed? ?out|authenticat|socket|\bread\b))\S",
)

_REFUSED: Final[Mapping[str, re.Pattern[str]]] = {
    tool: re.compile("|".join((*_OPTIONS, *texts)), re.IGNORECASE)
    for tool, texts in {
        "sbatch": _SLURM,
        "bsub": _LSF,
        # Slurm's `qsub` passes on what `sbatch` says.
        "qsub": (*_PBS, *_SLURM),
        "condor_submit": _CONDOR,
    }.items()
}
_LAST_WORD: Final = re.compile(
    r"job submission failed: (.*)|unable to allocate resources: (.*)", re.IGNORECASE
)
"""Where Slurm says why it failed; lines before it may be warnings, or earlier tries."""


def raise_not_submitted(tool: str, said: ToolOutput) -> NoReturn:
    """Raise an error for a failed submission: SubmitRefused for a clear refusal, else Unavailable, since the job may exist.

    `tool` is the name of the submit tool, `said` its output.
    """
    text = said.err if said.complained else said.out
    decisive = [first or second for first, second in _LAST_WORD.findall(text)]
    if said.code > 0 and _REFUSED[tool].search(decisive[-1] if decisive else text):
        raise SubmitRefused(said.complaint)
    raise Unavailable(f"{tool}: {said.complaint}")
