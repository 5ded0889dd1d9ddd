"""Reads `#SBATCH` scripts of Slurm. The script goes along, and is run by its interpreter with the variables that Slurm would set.

Source: sbatch(1) of Slurm 24.05. What only the node knows, such as the job's id, a shell sets before it becomes the interpreter.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from wms.jobdesc.document import text_of
from wms.jobdesc.languages import common_values, sbatch_text, slurm_values
from wms.jobdesc.languages.draft import JobDraft, drafted
from wms.jobdesc.languages.sbatch_elements import IMPOSSIBLE, LETTERS, NAMES, OMITTED, SAME
from wms.jobdesc.languages.sbatch_program import put_program
from wms.jobdesc.languages.sbatch_request import TASK, BatchRequest, origin_of
from wms.jobdesc.languages.sbatch_text import SbatchOption
from wms.jobdesc.languages.translation import Translation
from wms.jobdesc.loss_report import LossNotes, Origin

NAME: Final = "sbatch"
SIZE_LIMIT: Final = 4 * 1024 * 1024
_NEEDS: Final = re.compile(
    r"gpu|cuda|a100|h100|v100|p100|k80|mem|fat|smp|knl|phi|arm|power|fpga", re.IGNORECASE
)
SIGNAL_SECONDS: Final = 60
_TERM: Final = re.compile(r"(?:B:)?(?:SIG)?(?:TERM|15)(?:@(\d{1,5}))?", re.IGNORECASE | re.ASCII)
_TAG: Final = re.compile(r"%(.)")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Handler: TypeAlias = Callable[[BatchRequest, SbatchOption], None]


def read(data: bytes) -> Translation:
    """Return the translation of a batch script: one job, or an array.

    Raise InvalidDescription if Slurm would refuse the script, or if it is for another batch system. Raise Rejected if it is too large,
    or not UTF-8.
    """
    script = sbatch_text.parse(text_of(data, SIZE_LIMIT), NAMES, LETTERS, SAME)
    draft = JobDraft(LossNotes())
    _put_all(BatchRequest(draft, script))
    return drafted(NAME, [draft])


def _put_all(request: BatchRequest) -> None:
    """Put every option into the draft, then the script."""
    for option in request.script.options:
        if option is not request.said[option.name]:
            request.draft.omitted(origin_of(option), "a later line stands over it")
        elif handler := HANDLERS.get(option.name):
            handler(request, option)
        elif option.name in OMITTED:
            request.draft.omitted(origin_of(option), OMITTED[option.name])
        else:
            request.draft.impossible(origin_of(option), IMPOSSIBLE[option.name])
    for line in request.script.late:
        request.draft.omitted(Origin("#SBATCH", line), "stands after a command, where Slurm reads no options")
    if "export" not in request.said:
        request.draft.omitted(Origin("--export"), _SHELL)
    put_program(request)


# --- handlers --------------------------------------------------------------------------------------


def _name(request: BatchRequest, option: SbatchOption) -> None:
    request.draft.put("name", request.plain(option.value), origin_of(option))


def _processors(request: BatchRequest, option: SbatchOption) -> None:
    request.draft.put("processors", request.processors, origin_of(option), "tasks times processors of each")


def _nodes(request: BatchRequest, option: SbatchOption) -> None:
    if re.fullmatch(r"0*1(-\d+)?", option.value.strip()):
        request.draft.kept(origin_of(option))
    else:
        request.draft.problem(origin_of(option), f"{option.value[:40]!r} nodes: a job runs on one node")


def _time(request: BatchRequest, option: SbatchOption) -> None:
    found = slurm_values.seconds(option.value)
    if found is None:
        request.draft.impossible(origin_of(option), f"{option.value[:40]!r} is no time")
    elif found == 0:
        request.draft.kept(origin_of(option), "the limit is that of the resource")
    else:
        request.draft.put("wall_time", found, origin_of(option))


def _signal(request: BatchRequest, option: SbatchOption) -> None:
    found = _TERM.fullmatch(option.value.strip())
    if found is None:
        sentence = "a job that is ended gets SIGTERM, and no other signal before"
        request.draft.impossible(origin_of(option), sentence)
    else:
        seconds = int(found[1] or SIGNAL_SECONDS)
        request.draft.put("grace_time", seconds, origin_of(option), "the signal comes at the end of --time")


def _memory_of(each: Callable[[BatchRequest], int], sentence: str = "") -> Handler:
    def handler(request: BatchRequest, option: SbatchOption) -> None:
        found = common_values.mebibytes(option.value)
        if not found or not any(digit in "123456789" for digit in option.value):
            request.draft.impossible(
                origin_of(option), f"{option.value[:40]!r} is no size; 0 is all that a node has"
            )
        else:
            request.draft.put("memory_mb", found * each(request), origin_of(option), sentence)

    return handler


def _disk(request: BatchRequest, option: SbatchOption) -> None:
    found = common_values.mebibytes(option.value)
    if found is None:
        request.draft.impossible(origin_of(option), f"{option.value[:40]!r} is no size")
    else:
        request.draft.put("disk_mb", found, origin_of(option))


def _gpus(request: BatchRequest, option: SbatchOption) -> None:
    if option.name == "gres" and option.value.lower() == "none":
        request.draft.kept(origin_of(option))
    elif slurm_values.gpus(option.value, in_gres=option.name == "gres") is None:
        sentence = (
            "only a number of GPUs can be asked for, without a model; ask for others by requirements or tags"
        )
        request.draft.impossible(origin_of(option), sentence)
    elif request.gpus:
        request.draft.put("gpus", request.gpus, origin_of(option))
    else:
        request.draft.kept(origin_of(option))


def _array(request: BatchRequest, option: SbatchOption) -> None:
    values = [str(each) for each in request.tasks_of_array]
    request.draft.put_item("parameters", TASK, values, origin_of(option), f"an array of {len(values):,} jobs")
    limit = option.value.partition("%")[2]
    if limit.strip() == "1" and len(values) > 1:
        sentence = "tasks one after another, as %1 has them, need --after: each may go on with what the last one left"
        request.draft.impossible(Origin("--array %", option.line), sentence)
    elif limit:
        request.draft.omitted(Origin("--array %", option.line), "more tasks than that may run at a time")


def _dependency(request: BatchRequest, option: SbatchOption) -> None:
    fields = {"afterok": "after", "afterany": "after_any"}
    for part in option.value.split(","):
        kind, _, ids = part.partition(":")
        if kind not in fields or not re.fullmatch(r"\d+(:\d+)*", ids):
            sentence = f"{part[:60]!r} cannot be waited for: only afterok and afterany of ids of jobs here"
            request.draft.impossible(origin_of(option), sentence)
            continue
        for each in ids.split(":"):
            request.draft.append(fields[kind], int(each), origin_of(option), "the id of a job of this system")


def _stream_into(field: str) -> Handler:
    def handler(request: BatchRequest, option: SbatchOption) -> None:
        name = _file_name(request, option.value)
        if field == "stderr" and option.value == request.text("output"):
            request.draft.kept(origin_of(option), "is the file of the standard output")
        elif name is None:
            sentence = f"is {field}.txt among the job's outputs, and `wms logs` shows it"
            request.draft.translated(origin_of(option), sentence)
        else:
            request.draft.put(field, name, origin_of(option))

    return handler


def _file_name(request: BatchRequest, pattern: str) -> str | None:
    """Return the file name of a pattern; None if it lies elsewhere, or only the node knows it."""
    tags = {
        "%": "%",
        "x": request.plain(request.text("job-name")),
        **({"a": f"{{{TASK}}}"} if request.tasks_of_array else {}),
    }
    name = request.plain(pattern).removeprefix("./")
    if name.startswith("/") or ".." in name or not all(tags.get(each) for each in _TAG.findall(name)):
        return None
    return _TAG.sub(lambda found: tags[found[1]], name)


def _stdin(request: BatchRequest, option: SbatchOption) -> None:
    if option.value == "/dev/null":
        request.draft.kept(origin_of(option))
        return
    name = option.value.rstrip("/").rpartition("/")[2]
    request.draft.add_input(name, option.value, origin_of(option))
    request.draft.put("stdin", name, origin_of(option))


_SHELL: Final = "variables of your shell do not go along: name those that the job needs, --export=NAME=value"


def _export(request: BatchRequest, option: SbatchOption) -> None:
    for word in filter(None, map(str.strip, option.value.split(","))):
        name, sign, value = word.partition("=")
        if word.upper() == "ALL":
            request.draft.omitted(origin_of(option), _SHELL)
        elif word.upper() in ("NONE", "NIL"):
            request.draft.kept(origin_of(option))
        elif sign and _VARIABLE.fullmatch(name):
            request.draft.put_item("environment", name, request.plain(value), origin_of(option))
        else:
            sentence = (
                f"the value of {name[:60]} is in your shell: write {name[:60]}=value, or give it by --env"
            )
            request.draft.impossible(origin_of(option), sentence)


def _directory(request: BatchRequest, option: SbatchOption) -> None:
    if option.value.rstrip("/") == ".":
        request.draft.kept(origin_of(option))
    else:
        sentence = "a job runs in a directory of its own: send what it reads by --input, and leave this out"
        request.draft.impossible(origin_of(option), sentence)


def _partition(request: BatchRequest, option: SbatchOption) -> None:
    if _NEEDS.search(option.value) and not (request.gpus or {"mem", "mem-per-cpu"} & request.said.keys()):
        sentence = f"{option.value[:40]!r} seems to be named for what its nodes have: ask for that, such as by --gres or --mem"
        request.draft.impossible(origin_of(option), sentence)
    else:
        request.draft.omitted(origin_of(option), "where a job may run is decided by what it needs")


def _exclusive(request: BatchRequest, option: SbatchOption) -> None:
    if option.value:
        request.draft.impossible(origin_of(option), "a node cannot be kept from some users only")
    else:
        request.draft.put("whole_node", True, origin_of(option))


def _no_requeue(request: BatchRequest, option: SbatchOption) -> None:
    request.draft.put("max_attempts", 1, origin_of(option))


def _requeue(request: BatchRequest, option: SbatchOption) -> None:
    request.draft.kept(origin_of(option))


HANDLERS: Final[Mapping[str, Handler]] = {
    "job-name": _name,
    "ntasks": _processors,
    "cpus-per-task": _processors,
    "ntasks-per-node": _processors,
    "ntasks-per-gpu": _processors,
    "cpus-per-gpu": _processors,
    "nodes": _nodes,
    "signal": _signal,
    "time": _time,
    "mem": _memory_of(lambda _: 1),
    "mem-per-cpu": _memory_of(lambda request: request.processors, "times the processors"),
    "mem-per-gpu": _memory_of(lambda request: max(1, request.gpus), "times the GPUs"),
    "tmp": _disk,
    "gres": _gpus,
    "gpus": _gpus,
    "gpus-per-node": _gpus,
    "gpus-per-task": _gpus,
    "array": _array,
    "dependency": _dependency,
    "output": _stream_into("stdout"),
    "error": _stream_into("stderr"),
    "input": _stdin,
    "export": _export,
    "chdir": _directory,
    "partition": _partition,
    "exclusive": _exclusive,
    "requeue": _requeue,
    "no-requeue": _no_requeue,
}
