"""The program of a batch script's job: a shell writes the script, sets Slurm's variables, and becomes the script's interpreter.

The text of the script is an argument, so that the description is whole by itself, wherever it is read.
"""

from typing import Final

from wms.jobdesc.array import INDEX
from wms.jobdesc.languages import common_values, slurm_values
from wms.jobdesc.languages.sbatch_request import TASK, BatchRequest
from wms.jobdesc.languages.sbatch_variables import ABSENT, AT_THE_NODE, OF_ARRAYS, known
from wms.jobdesc.loss_report import Origin

SCRIPT: Final = ".slurm_script"
"""The name of the script in the job's directory. Patterns of outputs do not match it, as it begins with a dot."""
_ECHOED: Final = {
    "cpus-per-task": "SLURM_CPUS_PER_TASK",
    "ntasks-per-node": "SLURM_NTASKS_PER_NODE",
    "gpus": "SLURM_GPUS",
    "gpus-per-node": "SLURM_GPUS_PER_NODE",
    "gpus-per-task": "SLURM_GPUS_PER_TASK",
    "dependency": "SLURM_JOB_DEPENDENCY",
}
"""The variables that repeat the value of an option."""


def put_program(request: BatchRequest) -> None:
    """Put the script and its variables into the draft of a request."""
    origin = Origin("#!", 1)
    merged = "error" not in request.said or request.text("error") == request.text("output")
    variables = dict(AT_THE_NODE)
    if request.tasks_of_array:
        variables["SLURM_ARRAY_JOB_ID"] = f"$((WMS_JOB_ID - {{{INDEX}}}))"
    sets = " ".join(f'{name}="{value}"' for name, value in variables.items())
    shell = f'printf %s "$1" > {SCRIPT}; shift; export {sets}; exec "$@"{" 2>&1" if merged else ""}'
    command = [*map(request.plain, request.script.interpreter), SCRIPT]
    request.draft.put("executable", "/bin/sh", origin, "the script goes along, and runs by its interpreter")
    request.draft.put(
        "arguments",
        ["-c", shell, "sh", request.plain(request.script.text), *command],
        origin,
        "a shell writes the script and sets Slurm's variables first",
    )
    request.draft.put(
        "output_sandbox",
        ["*"],
        Origin("the directory of the job"),
        "what the script writes there comes back; Slurm leaves it where the script was submitted",
    )
    given = _variables(request)
    request.draft.put(
        "environment",
        {**given, **request.draft.get("environment", {})},
        Origin("SLURM_*"),
        "the variables that Slurm sets",
    )
    _check_variables(request, {*given, *variables})


def _variables(request: BatchRequest) -> dict[str, str]:
    count = str(request.processors)
    made = {
        "SLURM_JOB_NAME": request.plain(request.text("job-name") or "sbatch"),
        **dict.fromkeys(("SLURM_JOB_NUM_NODES", "SLURM_NNODES"), "1"),
        **dict.fromkeys(("SLURM_NODEID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_GTIDS"), "0"),
        **dict.fromkeys(("SLURM_CPUS_ON_NODE", "SLURM_JOB_CPUS_PER_NODE"), count),
        "SLURM_TASKS_PER_NODE": str(request.tasks),
    }
    if {"ntasks", "ntasks-per-node", "ntasks-per-gpu"} & request.said.keys():
        made |= dict.fromkeys(("SLURM_NTASKS", "SLURM_NPROCS"), str(request.tasks))
    for name, variable in _ECHOED.items():
        if name in request.said:
            made[variable] = request.plain(request.text(name))
    if request.gpus:
        made["SLURM_GPUS_ON_NODE"] = str(request.gpus)
    for name, variable in (("mem", "SLURM_MEM_PER_NODE"), ("mem-per-cpu", "SLURM_MEM_PER_CPU")):
        if size := common_values.mebibytes(request.text(name)):
            made[variable] = str(size)
    ids = request.tasks_of_array
    if ids:
        made |= {
            "SLURM_ARRAY_TASK_ID": f"{{{TASK}}}",
            "SLURM_ARRAY_TASK_COUNT": str(len(ids)),
            "SLURM_ARRAY_TASK_MIN": str(ids[0]),
            "SLURM_ARRAY_TASK_MAX": str(ids[-1]),
            "SLURM_ARRAY_TASK_STEP": slurm_values.step_of(request.text("array")),
        }
    return made


def _check_variables(request: BatchRequest, given: set[str]) -> None:
    for name, line in request.script.variables.items():
        if name in OF_ARRAYS and name not in given:
            sentence = "is set only in arrays: write the line #SBATCH --array=... into the script"
            request.draft.impossible(Origin(name, line), sentence)
        elif name not in given and name not in ABSENT:
            request.draft.impossible(Origin(name, line), known(name))
