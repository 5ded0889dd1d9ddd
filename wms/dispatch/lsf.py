"""Sends pilots as jobs to an LSF cluster, by its command line tools.

The name of a pilot's job is the pilot's id, so one `bjobs -a` finds all pilots. The job's description (`bjobs -o description`) shows
administrators what the pilot's jobs require. `bsub` reads the script from standard input; the script holds no secret.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from wms.dispatch.batch import BatchDispatcher, BatchJob, State
from wms.dispatch.job_policy import comment
from wms.dispatch.port import PilotRequest, Request
from wms.dispatch.refusals import raise_not_submitted
from wms.errors import Unavailable, shown
from wms.ids import PilotId
from wms.job.reasons import Code

FORMAT = "jobid stat exit_code exit_reason job_name delimiter='|'"
NOTHING_THERE = re.compile(r"\bNo (unfinished )?job\b|is not found", re.IGNORECASE)
LONGEST_VALUE = 1_000
ALLOWED = {"app", "C", "D", "F", "G", "g", "gpu", "jsdl", "m", "p", "sla", "sp", "U", "v"}
"""The options of bsub that a pilot's request may name in its `attributes`, without their hyphen."""
CLAUSES = {"order", "affinity", "cu", "same"}
"""The sections of bsub's option -R that a request may name in its `attributes`.

The sections select and rusage are made from the request's fields `constraint` and `gres`.
"""

STATES: Mapping[str, State] = {
    **dict.fromkeys(("PEND", "PSUSP", "WAIT"), "Waiting"),
    **dict.fromkeys(("RUN", "USUSP", "SSUSP", "UNKWN", "PROV"), "Running"),
    "DONE": "Done",
    **dict.fromkeys(("EXIT", "ZOMBI"), "Failed"),
}  # fmt: skip
"""A pilot's state, as all dispatchers report it, for each job state of LSF. A job in any other state counts as running."""
_NUMBER = re.compile(r"Job <(\d+)> is submitted")


class LsfCluster(NamedTuple):
    """The LSF cluster that one computing element uses. An empty field leaves the choice to LSF's configuration."""

    configuration: str = ""
    """The directory with the file lsf.conf."""
    queue: str = ""
    project: str = ""


class LsfDispatcher(BatchDispatcher):
    """Sends pilots as jobs to an LSF cluster, and follows and cancels them there."""

    system = "LSF"

    def __init__(
        self, cluster: LsfCluster, directory: Path, agent: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        configured = {"LSF_ENVDIR": cluster.configuration} if cluster.configuration else {}
        super().__init__(directory, agent, {**environment, **configured})
        self._cluster = cluster

    async def _submit(self, options: Sequence[str], script: Path) -> str:
        said = await self._tools.run("bsub", *options, text=await asyncio.to_thread(script.read_text))
        number = _NUMBER.search(said.out)
        if said.code == 0 and number is None:
            raise Unavailable(f"bsub: an answer that is none of LSF's: {said.complaint}")
        if number is None:
            raise_not_submitted("bsub", said)
        return number[1]

    async def _jobs(self) -> dict[PilotId, BatchJob]:
        said = await self._tools.run("bjobs", "-a", "-noheader", "-o", FORMAT)
        if said.code != 0 and not NOTHING_THERE.search(said.err):
            raise Unavailable(f"bjobs: {said.complaint}")
        return jobs_of(said.out)

    async def _end(self, numbers: Sequence[str]) -> None:
        await self._tools.run("bkill", *numbers)

    def _options(self, order: PilotRequest) -> list[str]:
        attributes = order.request.attributes
        wrong = [
            name
            for name, value in attributes.items()
            if name not in ALLOWED | CLAUSES or not value.isprintable() or len(value) > LONGEST_VALUE
        ]
        wrong += [value for name, value in attributes.items() if name in CLAUSES and set(value) & set("[]")]
        if wrong:
            raise ValueError(f"no option for a pilot: {shown(', '.join(wrong), 200)}")
        wanted = {
            "-J": order.pilot_id,
            "-Jd": comment(order.policy),
            "-o": str(self._places.of(order.pilot_id) / "batch.log"),
            "-q": self._cluster.queue,
            "-P": self._cluster.project,
            "-n": str(order.request.cores),
            "-W": str(-(-order.request.walltime_seconds // 60) or ""),
            "-R": requirement(order.request),
            **{f"-{name}": value for name, value in attributes.items() if name in ALLOWED},
        }
        # A second start of the pilot would find no token.
        return ["-rn", *(word for option, value in wanted.items() if value for word in (option, value))]


def requirement(request: Request) -> str:
    """Return the value of bsub's option -R for a request: which hosts, one host for each job, and what is reserved on it."""
    memory = f"mem={request.memory_mb}MB" if request.memory_mb else ""
    aside = ":".join(each for each in (memory, *request.gres.split(",")) if each)
    sections = {
        "select": request.constraint,
        "rusage": aside,
        "span": "hosts=1",
        **{name: value for name, value in request.attributes.items() if name in CLAUSES},
    }
    return " ".join(f"{name}[{text}]" for name, text in sections.items() if text)


def jobs_of(printed: str) -> dict[PilotId, BatchJob]:
    """Parse the output of `bjobs` into jobs by pilot; a job's name is the pilot's id. Of two jobs with one name the later counts."""
    fields = (line.split("|", 4) for line in printed.splitlines())
    listed = sorted((each for each in fields if len(each) == 5), key=lambda each: (len(each[0]), each[0]))
    return {PilotId(each[4].strip()): _job(*each[:4]) for each in listed}


def _job(number: str, status: str, code: str, reason: str) -> BatchJob:
    state = STATES.get(status.strip(), "Running")
    if state != "Failed":
        return BatchJob(number, state)
    # The field has a code and words about a kill; "-" stands for an empty field.
    why = "" if reason.strip() in ("", "-") else reason.strip()
    ended = (
        f"exit code {code.strip()}" if code.strip() not in ("", "-", "0") else "it ended without an exit code"
    )
    shown_why = shown(why or ended, 300)
    if status.strip() == "ZOMBI":
        return BatchJob(number, state, shown_why, Code.NODE_LOST)
    return BatchJob(number, None if why.startswith("TERM_") else state, shown_why)
