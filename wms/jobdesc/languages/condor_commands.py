"""The catalogue of HTCondor's submit commands: what is done with each. The page of the guide is made from it.

Source: the manual of HTCondor, condor_submit. Memory without a unit is in MiB, disk in KiB.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from wms.jobdesc.conflicts import TOLD
from wms.jobdesc.languages import condor_ads, condor_files, condor_policies, condor_unused
from wms.jobdesc.languages.command_line import condor_arguments
from wms.jobdesc.languages.common_values import mebibytes, real
from wms.jobdesc.languages.condor_job import (
    CatalogueEntry,
    CondorJob,
    Handler,
    limit_wall_time,
    only,
    origin_of,
    refused,
)
from wms.jobdesc.languages.condor_macros import HTCONDOR_ALONE, evaluated, whole
from wms.jobdesc.languages.condor_text import Command
from wms.jobdesc.languages.translation import Element

FLAVOURS: Final = {
    "espresso": 1_200, "microcentury": 3_600, "longlunch": 7_200, "workday": 28_800, "tomorrow": 86_400,
    "testmatch": 259_200, "nextweek": 604_800,
}  # fmt: skip
"""The wall time in seconds of each JobFlavour, as CERN's batch service defines them."""
_VARIABLE = re.compile(r"(?!WMS_)[A-Za-z_][A-Za-z0-9_]*")


def _text_into(field: str) -> Handler:
    return lambda job, command: job.draft.put(field, command.value.strip('"'), origin_of(command))


def _number_into(field: str, ours: Callable[[int], int] = int, sentence: str = "") -> Handler:
    def handler(job: CondorJob, command: Command) -> None:
        found = whole(command.value)
        if found is None:
            job.draft.impossible(origin_of(command), HTCONDOR_ALONE)
        else:
            job.draft.put(field, ours(found), origin_of(command), sentence)

    return handler


def _size_into(field: str, unit: str) -> Handler:
    def handler(job: CondorJob, command: Command) -> None:
        found = mebibytes(evaluated(command.value.strip().strip('"')), unit)
        if found is None:
            job.draft.impossible(origin_of(command), HTCONDOR_ALONE)
        else:
            job.draft.put(field, found, origin_of(command))

    return handler


def split_arguments(text: str) -> list[str] | None:
    """Return the arguments of a command line in HTCondor's old or new syntax; None if it is in neither."""
    found = condor_arguments(text)
    if found is not None:
        return found
    if re.search(r'(?<!\\)"', text):
        return None
    return text.replace('\\"', '"').split()


def _arguments(job: CondorJob, command: Command) -> None:
    found = split_arguments(command.value)
    if found is None:
        job.draft.problem(
            origin_of(command),
            "has a double quote within the old syntax",
            'put the whole into double quotes, or write \\"',
        )
    else:
        job.draft.put("arguments", found, origin_of(command))


def _environment(job: CondorJob, command: Command) -> None:
    found = condor_arguments(command.value)
    texts = command.value.replace('\\"', '"').split(";") if found is None else found
    pairs = [each.partition("=") for each in texts if each.strip()]
    if bad := next((name for name, sign, _ in pairs if not sign), None):
        job.draft.problem(origin_of(command), f"has the variable {bad[:60]} without a value")
    else:
        variables = {name.strip(): value for name, _, value in pairs}
        job.draft.put_items("environment", variables, origin_of(command))


def _getenv(job: CondorJob, command: Command) -> None:
    """Take variables of the submit machine along: all, or those that fit patterns. Those of `environment` stand over them."""
    patterns, origin = (
        [each for each in re.split(r"[,\s]+", command.value.strip('"')) if each],
        origin_of(command),
    )
    if [each.lower() for each in patterns] in (["false"], ["f"], ["no"], []):
        job.draft.kept(origin)
        return
    if job.machine is None:
        job.draft.problem(origin, "takes variables of the machine on which the document is submitted")
        return
    everything = [each.lower() for each in patterns] in (["true"], ["t"], ["yes"])
    own = job.draft.get("environment", {})
    taken = {
        name: value
        for name, value in job.machine.environment.items()
        if _VARIABLE.fullmatch(name) and name not in own and (everything or _is_wanted(name, patterns))
    }
    sentence = f"{len(taken):,} variables of this machine go with the job"
    job.draft.put_items("environment", taken, origin, sentence)


def _is_wanted(name: str, patterns: list[str]) -> bool:
    """Return whether a variable fits one of the patterns, and none that begins with `!`."""

    def fits(pattern: str) -> bool:
        return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name, re.IGNORECASE) is not None

    if any(fits(each[1:]) for each in patterns if each.startswith("!")):
        return False
    wanted = [each for each in patterns if not each.startswith("!")]
    return any(map(fits, wanted)) or not wanted


def _gpus(job: CondorJob, command: Command) -> None:
    if whole(command.value) == 0:
        job.draft.kept(origin_of(command))
    else:
        _number_into("gpus")(job, command)


def _gpu_memory(job: CondorJob, command: Command) -> None:
    size = mebibytes(evaluated(command.value.strip().strip('"')), "m")
    if size is None:
        job.draft.impossible(origin_of(command), "is no size that can be read")
    else:
        job.draft.require(f"other.GPUMemory >= {size}", origin_of(command))


def _gpu_capability(job: CondorJob, command: Command) -> None:
    least = real(evaluated(command.value))
    if least is None:
        job.draft.impossible(origin_of(command), HTCONDOR_ALONE)
    else:
        job.draft.require(f"other.GPUCapability >= {least}", origin_of(command))


def _universe(job: CondorJob, command: Command) -> None:
    name, origin = command.value.strip().lower(), origin_of(command)
    if name in ("vanilla", "5"):
        job.draft.kept(origin)
    elif name in ("container", "docker"):
        if job.is_in_container():
            job.draft.translated(origin, "the image becomes container")
        else:
            job.draft.problem(origin, "names no image")
    else:
        job.draft.problem(origin, f"jobs of the universe {name[:40]} cannot be carried out", "use vanilla")


def _flavour(job: CondorJob, command: Command) -> None:
    seconds = FLAVOURS.get(command.value.strip().strip('"').lower())
    if seconds is None:
        job.draft.impossible(origin_of(command), "is no flavour that is known")
    else:
        limit_wall_time(job, command, seconds)


def value_of(text: str) -> bool | int | float | str | None:
    """Return the value of an attribute `+name = value`; None if it is no constant."""
    said = text.strip()
    if len(said) > 1 and said[0] == said[-1] == '"':
        return said[1:-1].replace('\\"', '"')
    truth = {"true": True, "false": False}.get(said.lower())
    if truth is not None:
        return truth
    value = evaluated(said)
    number = whole(value)
    return real(value) if number is None else number


def attribute(job: CondorJob, command: Command) -> None:
    """Put an attribute of the job's ad, `+name = value` or `MY.name = value`, into the draft. The token says whose job it is."""
    value = value_of(command.value)
    if TOLD.get(command.key[3:]) == "":
        job.draft.omitted(origin_of(command), "the token says whose job it is")
    elif value is None:
        job.draft.impossible(origin_of(command), "is an expression; attributes are constants")
    else:
        job.draft.put_item("attributes", command.name[3:], value, origin_of(command))


def _entry(how: str, handler: Handler, *names: str) -> CatalogueEntry:
    return CatalogueEntry("translated" if how else "kept", how, handler, names)


def _wall_time(job: CondorJob, command: Command) -> None:
    seconds = whole(command.value)
    if seconds is None:
        job.draft.impossible(origin_of(command), HTCONDOR_ALONE)
    else:
        limit_wall_time(job, command, seconds)


CATALOGUE: Final[Mapping[str, CatalogueEntry]] = {
    "universe": _entry("`vanilla`, `container` and `docker`; others are refused", _universe, "jobuniverse"),
    "executable": _entry("goes with the job, unless `transfer_executable` is false", condor_files.executable, "cmd"),
    "arguments": _entry("`arguments`, from both syntaxes", _arguments, "args"),
    "environment": _entry("`environment`, from both syntaxes", _environment, "env"),
    "getenv": _entry("variables of the submit machine go with the job", _getenv, "get_env"),
    "container_image": _entry("`container`; refused if it is a file of the submit machine", condor_files.image, "containerimage"),
    "docker_image": _entry("`container`, with `docker://`", condor_files.image, "dockerimage"),
    "my.singularityimage": _entry("`container`", condor_files.image),
    "input": _entry("`stdin`; the file goes with the job", condor_files.standard_input, "stdin", "in"),
    "output": _entry("`stdout`, without its directory", condor_files.stream_into("stdout"), "stdout", "out"),
    "error": _entry("`stderr`, without its directory", condor_files.stream_into("stderr"), "stderr", "err"),
    "transfer_input_files": _entry("files and directories go with the job, URLs become `inputs`", condor_files.input_files, "transferinputfiles", "transferinput"),
    "transfer_output_files": _entry("`output_sandbox`; without it, all files come back", condor_files.output_files, "transferoutputfiles", "transferoutput"),
    "transfer_output_remaps": _entry("URLs become `outputs`; new names are left out: results have the names that the job gave them", condor_files.output_remaps, "transferoutputremaps"),
    "request_cpus": _entry("`processors`", _number_into("processors"), "requestcpus"),
    "request_memory": _entry("`memory_mb`", _size_into("memory_mb", "m"), "requestmemory"),
    "request_disk": _entry("`disk_mb`", _size_into("disk_mb", "k"), "requestdisk"),
    "request_gpus": _entry("`gpus`", _gpus, "requestgpus"),
    "gpus_minimum_memory": _entry("a requirement on `GPUMemory`", _gpu_memory),
    "gpus_minimum_capability": _entry("a requirement on `GPUCapability`", _gpu_capability),
    "require_gpus": _entry("a requirement on `GPUCapability`, `GPUMemory`, `GPUCudaVersion`; other attributes are refused", condor_ads.gpu_requirements),
    "requirements": _entry("`requirements`, in words of our ads; unknown attributes are refused", condor_ads.requirements),
    "rank": _entry("`rank`, in words of our ads; left out where it has others", condor_ads.rank, "preferences"),
    "priority": _entry("`priority`, from 0 to 10", _number_into("priority", lambda more: min(10, max(0, more + 1)), "becomes priority, 0 to 10"), "prio", "jobprio"),
    "batch_name": _entry("`job_group`", _text_into("job_group"), "job_batch_name", "jobbatchname"),
    "description": _entry("`name`", _text_into("name"), "jobdescription"),
    "allowed_execute_duration": _entry("`wall_time`, in seconds", _wall_time, "allowedexecuteduration"),
    "job_max_vacate_time": _entry("`grace_time`, in seconds", _number_into("grace_time"), "jobmaxvacatetime", "kill_sig_timeout"),
    "allowed_job_duration": refused("counts the transfer of files, too; use allowed_execute_duration", "allowedjobduration"),
    "my.jobflavour": _entry("`wall_time`, as CERN defines the flavours", _flavour),
    "my.maxruntime": _entry("`wall_time`, in seconds", _wall_time),
    "my.requestruntime": _entry("`wall_time`, in seconds", _wall_time),
    "should_transfer_files": only(("yes", "true", "if_needed", "auto"), "jobs do not run in a directory of the submit machine", "shouldtransferfiles"),
    "when_to_transfer_output": _entry("`ON_EXIT`, `ON_SUCCESS`; `ON_EXIT_OR_EVICT`: an attempt that is cut short is started afresh", condor_files.when_outputs, "whentotransferoutput"),
    "transfer_executable": CatalogueEntry("kept", "whether the program goes with the job", lambda job, command: job.draft.kept(origin_of(command)), ("transferexecutable",)),
    "initialdir": CatalogueEntry("kept", "paths of inputs are relative to it", lambda job, command: job.draft.kept(origin_of(command)), ("initial_dir", "job_iwd", "iwd")),
    "preserve_relative_paths": CatalogueEntry("kept", "whether inputs keep their directories", lambda job, command: job.draft.kept(origin_of(command)), ("preserverelativepaths",)),
    "transfer_input": only(("true",), "standard input is a file that goes with the job"),
    "transfer_output": only(("true",), "standard output is always kept"),
    "transfer_error": only(("true",), "standard error is always kept"),
    **condor_policies.POLICIES,
    **condor_unused.UNUSED,
}  # fmt: skip

_NAMES: Final = {name: key for key, entry in CATALOGUE.items() for name in (key, *entry.names)}
_FAMILIES: Final = tuple(each for each in CATALOGUE if each.endswith("*"))


@lru_cache(maxsize=4_096)  # each queue statement asks for all commands
def entry_of(key: str) -> str | None:
    """Return the catalogue's name of a command, whose own name is in lower case; None if it has none.

    Families of commands, such as those for clouds, are known by how their names begin.
    """
    # An attribute of the job's ad that a command sets is that command.
    known = _NAMES.get(key) or _NAMES.get(key.removeprefix("my."))
    return known or next((each for each in _FAMILIES if key.startswith(each[:-1])), None)


_STATEMENTS: Final[Mapping[str, Element]] = {
    "queue": Element("kept", "all forms; an array, or several descriptions if a command without placeholders differs from job to job"),
    "queue … from script |": Element("impossible", "what a program prints is HTCondor's alone"),
    "queue … from TABLE": Element("impossible", "write the columns into the names of variables"),
    "if, elif, else, endif": Element("kept", "as HTCondor 25 takes them"),
    "include : file": Element("kept", "the file of the submit machine is read"),
    "include command, use, error, warning": Element("impossible", "is HTCondor's alone"),
    "$(name), $(name:default), $F…(), $INT(), …": Element("kept", "as HTCondor expands them; what is not defined is empty"),
    "$Ff(), $Fw(), $Fu(), $Fa()": Element("impossible", "make paths of the submit machine"),
    "$ENV()": Element("kept", "a variable of the submit machine"),
    "$RANDOM_CHOICE(), $RANDOM_INTEGER()": Element("kept", "drawn for each job when the document is read"),
    "$(Process), $(Step), $(Row), $(ItemIndex)": Element("kept", "`$(Process)` counts the jobs of all statements, as in one cluster"),
    "$(ClusterId)": Element("translated", "a number of this submission's own"),
    "$(SUBMIT_TIME), $(YEAR), $(MONTH), $(DAY)": Element("kept", "the time at which the document is read"),
    "$(ARCH), $(OPSYS), $(SPOOL), $(JobId), …": Element("impossible", "are known to HTCondor alone"),
    "$$(name)": Element("impossible", "is a value of the machine that runs the job"),
    "+name, MY.name": Element("kept", "`attributes`; expressions are refused"),
    "any other name": Element("omitted", "is a macro of the author, or nothing to HTCondor either"),
}  # fmt: skip


def _elements() -> Mapping[str, Element]:
    """Return what is done with each statement, macro and command, and with each attribute of a machine in `requirements`."""
    found = dict(_STATEMENTS)
    for key, entry in sorted(CATALOGUE.items()):
        names = (name.replace("my.", "+") for name in (key, *entry.names))
        found[", ".join(names)] = Element(entry.fate, entry.how)
    for name, ours in sorted(condor_ads.shown_attributes().items()):
        found[f"requirements, rank: {name}"] = Element("translated", f"`{ours}`")
    found["requirements, rank: OpSysName, OpSysAndVer"] = Element(
        "translated",
        "`other.GlueHostOperatingSystemName` and `Release`, for AlmaLinux, CentOS, Debian, Fedora, RedHat, Rocky and Ubuntu",
    )
    found["requirements, rank: OpSys, OpSysLegacy"] = Element("translated", "every pilot runs on Linux")
    found["requirements: others"] = Element("impossible", "resources here do not tell them")
    found["rank: others"] = Element("omitted", "any machine will do")
    return found


ELEMENTS: Final = _elements()
"""Every element of submit files, for the guide."""
