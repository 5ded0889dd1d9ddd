"""Sends pilots as jobs to a PBS server, Torque or PBS Pro (OpenPBS), by its command line tools.

A pilot's job has the pilot's id as its name and as the variable `WMS_PILOT`. So one `qstat -f` finds all pilots, even if the server cuts
names. The job's variables also show the server's administrators what the pilot's jobs require.

A command line holds no secret, and plain words alone, since the `qsub` of Slurm's Torque commands passes its arguments through a shell.
"""

import asyncio
import os
import pwd
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from wms.dispatch.batch import BatchDispatcher, BatchJob, State
from wms.dispatch.job_policy import environment
from wms.dispatch.port import PilotRequest, Request
from wms.dispatch.refusals import raise_not_submitted
from wms.errors import Unavailable, shown
from wms.ids import PilotId

Flavour: TypeAlias = Literal["torque", "pbspro"]

NO_SUCH_JOB = 153
"""The exit code of `qstat` for an unknown job (PBSE_UNKJOBID); Slurm's `qstat` also has it for an empty list."""
WORD = re.compile(r"[\w.+/:=@%^-]+", re.ASCII)
"""The form that an option's value must have. A comma is excluded, since it would begin another resource in a list."""
LETTERS = ("-A", "-P", "-p", "-W", "-a", "-c")
"""The options of qsub that a pilot's request may name in its `attributes`; -W only with the attributes in `ATTRIBUTES`."""
ATTRIBUTES = re.compile(r"(group_list|x|qos|run_count)=[\w.+/:=@%^,-]+", re.ASCII)
RESOURCE = re.compile(r"[a-z][a-z0-9_]*")
OURS = {"nodes", "select", "place", "walltime", "mem", "ncpus", "mpiprocs", "host", "block"}

WAITING, LIVING, OVER = frozenset("QHWTM"), frozenset("REBSU"), frozenset("CFX")
"""PBS's one-letter job states, divided into waiting, running and ended jobs. A job in any other state counts as running."""
FIRST_SIGNAL = 256
"""An exit status of PBS above this number means that a signal ended the job: the status minus this number."""

_JOB = re.compile(r"Job Id:\s*(\S+)")
_ATTRIBUTE = re.compile(r"\s+([A-Za-z_][\w.]*) = (.*)")
_PILOT = re.compile(r"(?:^|,)WMS_PILOT=([^,\s]+)")


class PbsServer(NamedTuple):
    """The PBS server that one computing element uses. An empty field leaves the choice to PBS's configuration."""

    flavour: Flavour = "torque"
    server: str = ""
    queue: str = ""
    account: str = ""
    name_length: int = 230
    """How many characters of a job's name the server keeps: only 15 at some servers."""


class PbsDispatcher(BatchDispatcher):
    """Sends pilots as jobs to a PBS server, and follows and cancels them there."""

    system = "PBS"

    def __init__(
        self, server: PbsServer, directory: Path, agent: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        configured = {"PBS_DEFAULT": server.server, "PBS_SERVER": server.server} if server.server else {}
        super().__init__(directory, agent, {**environment, **configured})
        self._server = server
        self._user = pwd.getpwuid(os.geteuid()).pw_name

    async def _submit(self, options: Sequence[str], script: Path) -> str:
        said = await self._tools.run("qsub", *options, str(script))
        if said.code != 0:
            raise_not_submitted("qsub", said)
        return said.out.strip().rpartition("\n")[2]

    async def _jobs(self) -> dict[PilotId, BatchJob]:
        asked = ("-x", "-f") if self._server.flavour == "pbspro" else ("-f",)
        said = await self._tools.run("qstat", *asked)
        if said.code not in (0, NO_SUCH_JOB) or (said.code and said.printed.strip()):
            raise Unavailable(f"qstat: {said.complaint}")
        return await asyncio.to_thread(jobs_of, said.out, self._user)

    async def _end(self, numbers: Sequence[str]) -> None:
        await self._tools.run("qdel", *numbers)

    def _options(self, order: PilotRequest) -> list[str]:
        place = self._places.of(order.pilot_id)
        letters, resources = _sorted_out(order.request.attributes)
        wanted = {
            "-N": order.pilot_id[: self._server.name_length],
            "-o": str(place / "batch.log"),
            "-q": self._server.queue,
            "-A": self._server.account,
            "-l": ",".join(_resources(order.request, resources, self._server.flavour)),
            **letters,
        }
        for option, value in wanted.items():
            if value and not WORD.fullmatch(value.replace(",", "")):
                raise ValueError(f"qsub {option}: no plain word: {shown(value, 80)}")
        options = [word for option, value in wanted.items() if value for word in (option, value)]
        # A second start of the pilot would find no token.
        return ["-j", "oe", "-r", "n", "-m", "n", *options, "-v", _variables(order)]


def jobs_of(printed: str, user: str) -> dict[PilotId, BatchJob]:
    """Parse the output of `qstat -f` into the jobs of this user, by pilot."""
    found = {}
    for number, said in _records(printed):
        if said.get("Job_Owner", "").partition("@")[0] == user:
            named = _PILOT.search(said.get("Variable_List", ""))
            found[PilotId(named[1] if named else said.get("Job_Name", ""))] = _job(number, said)
    return found


def _records(printed: str) -> list[tuple[str, dict[str, str]]]:
    """Parse the output of `qstat -f` into the number and the attributes of each job.

    A line that begins no attribute continues the line before it, without a blank between them.
    """
    records: list[tuple[str, dict[str, str]]] = []
    last = ""
    for line in printed.splitlines():
        if begun := _JOB.match(line):
            records.append((begun[1], {}))
            last = ""
        elif records and (attribute := _ATTRIBUTE.fullmatch(line)):
            # Owner and state come before the variables, so a job's variables cannot replace them.
            last = attribute[1]
            records[-1][1].setdefault(last, attribute[2])
        elif records and last and line.strip():
            records[-1][1][last] += line.strip()
    return records


def _job(number: str, said: Mapping[str, str]) -> BatchJob:
    letter = said.get("job_state", "")
    if letter not in OVER:
        return BatchJob(
            number, "Waiting" if letter in WAITING else "Running", shown(said.get("comment", ""), 300)
        )
    state, why = _ended(said.get("exit_status") or said.get("Exit_status") or "")
    return BatchJob(number, state, why)


def _ended(status: str) -> tuple[State | None, str]:
    try:
        code = int(status)
    except ValueError:
        return None, "it ended without an exit code"
    if code > FIRST_SIGNAL:
        return None, f"signal {code - FIRST_SIGNAL}"
    return ("Done", "") if code == 0 else ("Failed", f"exit code {code}")


def _sorted_out(attributes: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Divide the attributes of a request into options of qsub, and resources for its option -l.

    Raise ValueError for a name or value that a pilot's request may not have.
    """
    letters = {name: value for name, value in attributes.items() if name.startswith("-")}
    resources = {name: value for name, value in attributes.items() if name not in letters}
    wrong = [name for name in letters if name not in LETTERS]
    wrong += [name for name in resources if name in OURS or not RESOURCE.fullmatch(name)]
    wrong += [name for name, value in resources.items() if not WORD.fullmatch(value)]
    wrong += [
        f"-W {value}" for name, value in letters.items() if name == "-W" and not ATTRIBUTES.fullmatch(value)
    ]
    if wrong:
        raise ValueError(f"no option for a pilot: {shown(', '.join(wrong), 200)}")
    return letters, resources


def _resources(request: Request, more: Mapping[str, str], flavour: Flavour) -> list[str]:
    """Return the parts of qsub's option -l: the node with its properties, and the wall time. `more` are further resources."""
    memory = f"mem={request.memory_mb}mb" if request.memory_mb else ""
    chosen = request.constraint.split(":") if request.constraint else []
    if flavour == "pbspro":
        node = ["select=1", f"ncpus={request.cores}", *([memory] if memory else []), *chosen]
        memory = ""
    else:
        node = ["nodes=1", f"ppn={request.cores}", *chosen]
    seconds = f"walltime={request.walltime_seconds}" if request.walltime_seconds else ""
    others = [f"{name}={value}" for name, value in more.items()]
    return [each for each in (":".join(node), memory, seconds, *others) if each]


def _variables(order: PilotRequest) -> str:
    """Return the environment variables of a job for qsub's option -v. It has only values that are plain words; the script sets the others."""
    said = {"WMS_PILOT": order.pilot_id, **environment(order.policy)}
    plain = {name: value.replace(",", "+") for name, value in said.items()}
    return ",".join(f"{name}={value}" for name, value in plain.items() if WORD.fullmatch(value))
