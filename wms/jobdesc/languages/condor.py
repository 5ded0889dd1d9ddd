"""HTCondor's submit files: each `queue` statement becomes a description, of an array if it queues several jobs.

Source: the manual of HTCondor, condor_submit. Memory without a unit is in MiB, disk in KiB.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from wms.jobdesc.document import text_of
from wms.jobdesc.languages import common_values
from wms.jobdesc.languages.command_line import condor_arguments
from wms.jobdesc.languages.condor_text import (
    OWN_MACROS,
    Command,
    QueueStatement,
    filled,
    macros,
    parse,
    without_macros,
)
from wms.jobdesc.languages.draft import JobDraft, drafted
from wms.jobdesc.languages.translation import Translation
from wms.jobdesc.loss_report import LossNotes, Origin

NAME: Final = "htcondor"
SIZE_LIMIT = 4 * 1024 * 1024
LOOKED_AT: Final = 65_536

Handler: TypeAlias = Callable[[JobDraft, Command], None]

_QUEUE = re.compile(rb"^[ \t]*queue\b(?![ \t]*=)", re.MULTILINE | re.IGNORECASE)


# A text over several lines of TOML may hold such a line too.
_TOML_TEXT = re.compile(rb"""[=\[,]\s*(?:\"{3}|'{3})|^[ \t]*\[\[?[^\n]*\][ \t]*$""", re.MULTILINE)


def looks_like(data: bytes) -> bool:
    """Return whether a document is probably a submit file.

    It must have a `queue` statement near its beginning or end, and there no text that only TOML has.
    """
    ends = data[:LOOKED_AT], data[-LOOKED_AT:]
    return any(map(_QUEUE.search, ends)) and not any(map(_TOML_TEXT.search, ends))


def read(data: bytes) -> Translation:
    """Return the translation of an HTCondor submit file.

    Raise InvalidDescription if the text is no submit file, or depends on the submit machine, as conditions and includes do. Raise
    Rejected if the document is too large, not UTF-8, or makes too many jobs.
    """
    notes = LossNotes()
    return drafted(NAME, [_draft(each, notes) for each in parse(text_of(data, SIZE_LIMIT))])


def _draft(queue: QueueStatement, notes: LossNotes) -> JobDraft:
    draft = JobDraft(notes)
    ours = _sweep(draft, queue)
    keep = frozenset(ours) | OWN_MACROS
    definitions = _used_as_macros(queue)
    commands = [
        Command(
            each.name, filled(without_macros(each.value, queue.commands, keep, each.line), ours), each.line
        )
        for each in queue.commands.values()
        if each.key not in definitions or each.key in _HANDLERS or each.key in _OUTPUTS
    ]
    _outputs(draft, {each.key: each for each in commands if each.key in _OUTPUTS})
    for command in commands:
        if command.key not in _OUTPUTS:
            _take(draft, command)
    return draft


def _used_as_macros(queue: QueueStatement) -> frozenset[str]:
    """Return the names, in lower case, of those commands of the statement whose values other commands use by `$(name)`."""
    used = macros("\n".join(each.value for each in queue.commands.values()))
    return frozenset(queue.commands.keys() & used)


def _sweep(draft: JobDraft, queue: QueueStatement) -> dict[str, str]:
    """Make the draft an array if the statement queues several jobs. A statement that queues none becomes a problem.

    Return what replaces each macro of HTCondor, a placeholder of an array or a number, by the macro's name in lower case.
    """
    lists, origin = queue.items, Origin("queue", queue.line)
    jobs = queue.count * max((len(each) for each in lists.values()), default=1)
    if jobs == 0:
        draft.problem(origin, "queues no job")
        return {}
    index = "{n}" if jobs > 1 else "0"
    if jobs > 1:
        draft.put("array", jobs, origin)
    else:
        draft.kept(origin)
    for name, values in lists.items():
        draft.put_item(
            "parameters", _parameter(name), [each for each in values for _ in range(queue.count)], origin
        )
    ours = {name.lower(): f"{{{_parameter(name)}}}" for name in lists}
    return {**ours, "process": index, "procid": index, "step": index, "cluster": "0", "clusterid": "0"}


def _parameter(variable: str) -> str:
    """Return the parameter's name for a variable of a `queue` statement. The variable `n` becomes `n_`, since `{n}` is the index of a job."""
    return "n_" if variable == "n" else variable


def _take(draft: JobDraft, command: Command) -> None:
    handler = _HANDLERS.get(command.key)
    if handler is not None:
        handler(draft, command)
    elif command.name.startswith("+") or command.key.startswith("my."):
        name = re.sub(r"^\+?(?:my\.)?", "", command.name, flags=re.IGNORECASE)
        draft.put_item("attributes", name, _value(command.value), _origin(command))
    else:
        draft.impossible(_origin(command), _NO_MEANING.get(command.key, "is not known"))


def _origin(command: Command) -> Origin:
    return Origin(command.name, command.line)


# --- handlers --------------------------------------------------------------------------------------


def _text_into(field: str) -> Handler:
    return lambda draft, command: draft.put(field, command.value.strip('"'), _origin(command))


def _file_into(field: str) -> Handler:
    """Return a handler that puts a command's file name into the field, without its directory.

    The directory is one of the submit machine. On the node, the file is in the job's directory.
    """

    def handler(draft: JobDraft, command: Command) -> None:
        name = command.value.rpartition("/")[2]
        if command.value == "/dev/null":
            draft.translated(_origin(command), "the stream is kept all the same")
        else:
            sentence = "" if name == command.value else f"becomes the file {name} of the job's directory"
            draft.put(field, name, _origin(command), sentence)

    return handler


def _executable(draft: JobDraft, command: Command) -> None:
    """Put the program of an `executable` command into the draft. With an absolute path it is a program of the node.

    Otherwise it is a file of the submit machine, which becomes an input file of the job.
    """
    name = command.value
    if name.startswith("/"):
        draft.put("executable", name, _origin(command), "is the program of that path on the node")
    else:
        own = name.rpartition("/")[2]
        draft.add_input(own, name, _origin(command), executable=True)
        draft.put("executable", f"./{own}", _origin(command))


def _arguments(draft: JobDraft, command: Command) -> None:
    found = condor_arguments(command.value)
    draft.put("arguments", command.value.split() if found is None else found, _origin(command))


def _environment(draft: JobDraft, command: Command) -> None:
    found = condor_arguments(command.value)
    pairs = [each.partition("=") for each in (command.value.split(";") if found is None else found) if each]
    if not all(sign for _, sign, _ in pairs):
        draft.impossible(_origin(command), "has a variable without a value")
    else:
        draft.put("environment", {name.strip(): value for name, _, value in pairs}, _origin(command))


def _input_files(draft: JobDraft, command: Command) -> None:
    for source in _names(command.value):
        draft.add_input(source.rstrip("/").rpartition("/")[2], source, _origin(command))


def _names(text: str) -> Sequence[str]:
    return [name for each in text.strip('"').split(",") if (name := each.strip())]


_OUTPUTS: Final = frozenset({"transfer_output_files", "transfer_output_remaps"})


def _outputs(draft: JobDraft, commands: Mapping[str, Command]) -> None:
    """Put the files of `transfer_output_files` and `transfer_output_remaps` into the draft.

    A file that `transfer_output_remaps` gives a URL is sent there; the others go to the output sandbox. A remap to another
    file name is noted as impossible.
    """
    files, remaps = commands.get("transfer_output_files"), commands.get("transfer_output_remaps")
    pairs = (
        [each.partition("=") for each in remaps.value.strip('"').split(";") if each.strip()] if remaps else []
    )
    targets = {name.strip(): target.strip() for name, _, target in pairs}
    for name in _names(files.value) if files else ():
        if "://" not in targets.get(name, "") and files:
            draft.append("output_sandbox", name, _origin(files))
    for name, target in targets.items():
        assert remaps is not None
        if "://" in target:
            draft.append("outputs", {"name": name, "targets": [target]}, _origin(remaps))
        else:
            draft.impossible(_origin(remaps), "outputs keep their names; wms output renames them")


def _number_into(field: str, ours: Callable[[int], int] = int, sentence: str = "") -> Handler:
    def handler(draft: JobDraft, command: Command) -> None:
        found = common_values.whole_number(command.value)
        if found is None:
            draft.impossible(_origin(command), "is an expression, not a number")
        else:
            draft.put(field, ours(found), _origin(command), sentence)

    return handler


def _size_into(field: str, unit: str) -> Handler:
    def handler(draft: JobDraft, command: Command) -> None:
        found = common_values.mebibytes(command.value, unit)
        if found is None:
            draft.impossible(_origin(command), "is an expression, not a size")
        else:
            draft.put(field, found, _origin(command))

    return handler


def _gpus(draft: JobDraft, command: Command) -> None:
    if common_values.whole_number(command.value) in (None, 0):
        draft.impossible(_origin(command), "asks for no number of GPUs")
    else:
        draft.append("tags", "GPU", _origin(command), "becomes the tag GPU; how many is not told")


def _requirements(draft: JobDraft, command: Command) -> None:
    draft.put("requirements", command.value, _origin(command))


def _universe(draft: JobDraft, command: Command) -> None:
    name = command.value.lower()
    if name in ("vanilla", "5"):
        draft.kept(_origin(command))
    elif name in ("local", "grid"):
        draft.translated(_origin(command), "the system chooses where the job runs")
    else:
        draft.problem(_origin(command), f"there is no universe {command.value[:40]}")


def _value(text: str) -> bool | int | str:
    if len(text) > 1 and text[0] == text[-1] == '"':
        return text[1:-1]
    truth = {"true": True, "false": False}.get(text.lower())
    if truth is not None:
        return truth
    number = common_values.whole_number(text)
    return text if number is None else number


def _nothing(sentence: str) -> Handler:
    return lambda draft, command: draft.translated(_origin(command), sentence)


_HANDLERS: Final[Mapping[str, Handler]] = {
    "executable": _executable,
    "arguments": _arguments,
    "environment": _environment,
    "input": _file_into("stdin"),
    "output": _file_into("stdout"),
    "error": _file_into("stderr"),
    "transfer_input_files": _input_files,
    "request_cpus": _number_into("processors"),
    "request_memory": _size_into("memory_mb", "m"),
    "request_disk": _size_into("disk_mb", "k"),
    "request_gpus": _gpus,
    "requirements": _requirements,
    "rank": _text_into("rank"),
    "priority": _number_into("priority", lambda more: min(10, max(0, more + 1)), "becomes priority, 0 to 10"),
    "max_retries": _number_into("max_attempts", lambda times: times + 1),
    "batch_name": _text_into("job_group"),
    "job_batch_name": _text_into("job_group"),
    "description": _text_into("name"),
    "allowed_execute_duration": _number_into("wall_time"),
    "allowed_job_duration": _number_into("wall_time"),
    "universe": _universe,
    "log": _nothing("use wms timeline; there is no log file"),
    "should_transfer_files": _nothing("files always travel with the job"),
    "when_to_transfer_output": _nothing("outputs are kept when the job ends"),
    "transfer_executable": _nothing("a program with a relative path travels with the job"),
    "initialdir": _nothing("paths are relative to the document"),
    "getenv": _nothing("the environment of the submit machine is not taken along"),
    "notification": _nothing("nobody is written to; use wms wait"),
}
_NO_MEANING: Final = {
    "notify_user": "nobody is written to; use wms wait",
    "on_exit_hold": "use success_exit_codes",
    "on_exit_remove": "use success_exit_codes and max_attempts",
    "periodic_hold": "use limits of memory, disk and time",
    "periodic_release": "use max_attempts",
    "periodic_remove": "use limits of memory, disk and time",
    "concurrency_limits": "use wms limits",
    "container_image": "payloads have no image of their own yet",
    "docker_image": "payloads have no image of their own yet",
    "accounting_group": "the token says whose job it is",
    "accounting_group_user": "the token says whose job it is",
    "x509userproxy": "credentials are renewed by the system itself",
    "use_x509userproxy": "credentials are renewed by the system itself",
    "stream_output": "use wms logs -f",
    "stream_error": "use wms logs -f",
    "hold": "use wms submit --hold",
}
