"""Sends pilots as jobs to a Slurm cluster, by its command line tools.

The name of a pilot's job is the pilot's id, so one `squeue` finds all pilots. A pilot's directory is on a file system that the cluster
shares with this machine. It holds the configuration, the token, the output, and at the end the exit code. The token has mode 0600, and the
agent removes it before any payload starts. By the exit code the outcome is known even if Slurm has forgotten the job and has no accounting
(`sacct`). `sbatch` reads the script from standard input. The script, the command lines and the environment hold no secret.
"""

import asyncio
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import structlog

from wms.dispatch.commands import Tools
from wms.dispatch.direct_script import direct_script
from wms.dispatch.job_policy import comment
from wms.dispatch.pilot_directories import Places
from wms.dispatch.port import PilotOutput, PilotRequest, PilotSighting, Request, batches, last_line, settled
from wms.dispatch.refusals import SubmitRefused, raise_not_submitted
from wms.dispatch.script import pilot_script
from wms.dispatch.shared_directories import SharedDirectories
from wms.ids import PilotId
from wms.job.reasons import Code

log = structlog.get_logger()

FORMAT = "%i|%T|%r|%j"
"""The output format of squeue: a job's number, its state, the reason for the state, and its name."""
ACCOUNTED_DAYS = 14
NAMES_AT_ONCE = 500
"""How many jobs one command line names at most."""
SPEAKS_FOR_ITSELF = {"None", "Priority", "Resources", "NonZeroExitCode"}
OPTION = re.compile(r"[a-z][a-z-]*")
OURS = {
    "job-name",
    "output",
    "error",
    "wrap",
    "array",
    "parsable",
    "requeue",
    "no-requeue",
    "export",
    "chdir",
}

State: TypeAlias = Literal["Waiting", "Running", "Done", "Failed", "Aborted"]

NODE_FAILURES = ("NODE_FAIL", "BOOT_FAIL")
"""States of a job whose node Slurm has lost. The job may or may not still run there."""

STATES: Mapping[str, State] = {
    **dict.fromkeys(("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"), "Waiting"),
    **dict.fromkeys(("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT"), "Running"),
    "COMPLETED": "Done",
    **dict.fromkeys(("FAILED", "TIMEOUT", "OUT_OF_MEMORY", *NODE_FAILURES, "DEADLINE", "PREEMPTED"), "Failed"),
    **dict.fromkeys(("CANCELLED", "REVOKED"), "Aborted"),
}  # fmt: skip
"""A pilot's state, as all dispatchers report it, for each job state of Slurm. A job in any other state counts as running."""


class Cluster(NamedTuple):
    """The Slurm cluster that one computing element uses. An empty field leaves the choice to Slurm's configuration."""

    configuration: str = ""
    partition: str = ""
    account: str = ""


class _Job(NamedTuple):
    number: str
    state: str
    reason: str


class SlurmDispatcher(SharedDirectories):
    """Sends pilots as jobs to a Slurm cluster. Each job runs the command `agent` with `--config FILE`.

    Tools and pilots get only `environment` as their environment. Pilots have their directories below `directory`.
    """

    def __init__(
        self, cluster: Cluster, directory: Path, agent: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        self._cluster = cluster
        self._places = Places(directory)
        self._agent = tuple(agent)
        configured = {"SLURM_CONF": cluster.configuration} if cluster.configuration else {}
        self._tools = Tools({**environment, **configured})
        self._keeps_accounts = True

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        """Submit pilots, and return the state of each. A pilot is left out if it is unknown whether its job was submitted."""
        outcomes = await asyncio.gather(*map(self._submit, orders), return_exceptions=True)
        return settled(outcomes)

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[PilotSighting]:
        """Return the states of these pilots, from one list of all jobs of this account.

        For pilots that Slurm does not list, the exit codes in their directories count, and then Slurm's accounting (`sacct`).
        """
        if not pilot_ids:
            return []
        jobs = await self._jobs()
        known = [self._seen(pilot_id, jobs[pilot_id]) for pilot_id in pilot_ids if pilot_id in jobs]
        vanished = [pilot_id for pilot_id in pilot_ids if pilot_id not in jobs]
        return [*known, *await self._look_after(vanished)]

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        """Cancel the jobs of these pilots. Their job agents get SIGTERM, take no more jobs, and report before they end."""
        jobs = await self._jobs()
        numbers = [jobs[pilot_id].number for pilot_id in pilot_ids if pilot_id in jobs]
        for some in batches(numbers, NAMES_AT_ONCE):
            await self._tools.run("scancel", *some)

    async def alive(self) -> list[PilotId]:
        """Return the pilots whose Slurm jobs have not ended.

        All jobs of this process's Unix user are looked at, also those that other systems submitted.
        """
        return [name for name, job in (await self._jobs()).items() if not _is_over(job)]

    async def outputs(self, pilot_ids: Sequence[PilotId]) -> list[PilotOutput]:
        """Return the end of each pilot's output, from its directory. Pilots without output are absent."""
        return await asyncio.to_thread(self._places.outputs, pilot_ids)

    async def forget(self, pilot_ids: Sequence[PilotId]) -> None:
        """Remove tokens and input files of these pilots, which have ended.

        The latest directories of ended pilots are kept for their logs. Older ones are removed, whether their pilots are named or not.
        """
        alive = frozenset(await self.alive())
        await asyncio.to_thread(self._places.forget, pilot_ids, alive.__contains__)

    # --- sending ----------------------------------------------------------------------------------

    async def _submit(self, order: PilotRequest) -> PilotSighting:
        try:
            options = self._options(order)
            place = await asyncio.to_thread(self._places.make, order)
        except (OSError, ValueError) as error:
            return PilotSighting(pilot_id=order.pilot_id, state="Failed", reason=f"not sent: {error}")
        said = await self._tools.run("sbatch", "--parsable", *options, text=self._script(order, place))
        if said.code == 0:
            return PilotSighting(pilot_id=order.pilot_id, state="Submitted", reference=said.out.strip())
        try:
            raise_not_submitted("sbatch", said)
        except SubmitRefused as why:
            self._places.drop_token(order.pilot_id)
            return PilotSighting(pilot_id=order.pilot_id, state="Failed", reason=f"refused: {why}")

    def _script(self, order: PilotRequest, place: Path) -> str:
        if order.payload is not None:
            return direct_script(order.pilot_id, order.payload, place=shlex.quote(str(place)))
        files = {name: shlex.quote(str(place / name)) for name in ("config.toml", "token", "exit")}
        return pilot_script(
            order, self._agent, config=files["config.toml"], token=files["token"], exit_file=files["exit"]
        )

    def _options(self, order: PilotRequest) -> list[str]:
        attributes = order.request.attributes
        if wrong := [name for name in attributes if not OPTION.fullmatch(name) or name in OURS]:
            raise ValueError(f"no option for a pilot: {', '.join(wrong)}")
        wanted = {
            "job-name": order.pilot_id,
            "output": str(self._places.log_of(order.pilot_id)),
            "chdir": str(self._places.of(order.pilot_id)),
            "partition": self._cluster.partition,
            "account": self._cluster.account,
            **_resources(order.request),
            "comment": comment(order.policy),
            # A comment that the site sets wins over this one, whose content is also in the environment.
            **attributes,
        }
        # A second start of the pilot would find no token.
        return ["--no-requeue", *(f"--{name}={value}" for name, value in wanted.items() if value)]

    # --- following --------------------------------------------------------------------------------

    async def _jobs(self) -> dict[PilotId, _Job]:
        said = await self._tools.ask("squeue", "--me", "--noheader", "--states=all", f"--format={FORMAT}")
        fields = (line.split("|", 3) for line in said.out.splitlines())
        # An id is sent once; if there are two jobs of one name all the same, the later one counts.
        return {
            PilotId(each[3]): _Job(number=each[0], state=each[1], reason=each[2])
            for each in sorted((each for each in fields if len(each) == 4), key=lambda each: len(each[0]))
        }

    def _seen(self, pilot_id: PilotId, job: _Job) -> PilotSighting:
        state = STATES.get(job.state, "Running")
        if _is_over(job):
            self._places.drop_token(pilot_id)
        # An exit code shows that it ended before its node was lost.
        if job.state in NODE_FAILURES and (told := self._by_exit_code(pilot_id)) is not None:
            return told
        return PilotSighting(
            pilot_id=pilot_id,
            state=state,
            reference=job.number,
            reason=self._why(pilot_id, state, job),
            lost=Code.NODE_LOST if job.state in NODE_FAILURES else None,
        )

    def _why(self, pilot_id: PilotId, state: str, job: _Job) -> str:
        why = "" if job.reason in SPEAKS_FOR_ITSELF else job.reason
        if state in ("Waiting", "Running", "Done"):
            return why
        words = (job.state.lower(), why, last_line(self._places.output(pilot_id)))
        return ": ".join(word for word in words if word)

    async def _look_after(self, vanished: Sequence[PilotId]) -> list[PilotSighting]:
        """Return how pilots ended that Slurm does not list: by their exit codes, by Slurm's accounting, or else as lost.

        If the accounting does not answer, pilots without an exit code are left out.
        """
        told = [self._by_exit_code(pilot_id) for pilot_id in vanished]
        open_ids = [pilot_id for pilot_id, sighting in zip(vanished, told, strict=True) if sighting is None]
        accounts = await self._accounts(open_ids) if open_ids else {}
        if accounts is None:
            return [sighting for sighting in told if sighting is not None]
        rest = (
            self._seen(each, accounts[each]) if each in accounts else self._lost(each) for each in open_ids
        )
        return [*(sighting for sighting in told if sighting is not None), *rest]

    def _by_exit_code(self, pilot_id: PilotId) -> PilotSighting | None:
        try:
            code = int((self._places.of(pilot_id) / "exit").read_text())
        except (OSError, ValueError):
            return None
        if code == 0:
            return PilotSighting(pilot_id=pilot_id, state="Done")
        words = last_line(self._places.output(pilot_id))
        return PilotSighting(
            pilot_id=pilot_id, state="Failed", reason=f"exit code {code}: {words}".rstrip(": ")
        )

    def _lost(self, pilot_id: PilotId) -> PilotSighting:
        self._places.drop_token(pilot_id)
        return PilotSighting(
            pilot_id=pilot_id, state="Aborted", reason="Slurm knows no such job", lost=Code.PILOT_FORGOTTEN
        )

    async def _accounts(self, pilot_ids: Sequence[PilotId]) -> dict[PilotId, _Job] | None:
        """Return the jobs of these pilots in Slurm's accounting, by pilot; None if the accounting does not answer."""
        found: dict[PilotId, _Job] = {}
        for names in batches(pilot_ids, NAMES_AT_ONCE) if self._keeps_accounts else ():
            said = await self._tools.run(*_sacct(names))
            if said.code and "accounting storage is disabled" in said.err.lower():
                self._keeps_accounts = False
                break
            if said.code:
                log.warning("accounts not read", error=said.complaint)
                return None
            fields = (line.split("|", 2) for line in said.out.splitlines())
            found |= {PilotId(name): _Job(number, state.split()[0], "") for number, state, name in fields}
        return found


def _is_over(job: _Job) -> bool:
    return STATES.get(job.state) in ("Done", "Failed", "Aborted")


def _resources(request: Request) -> dict[str, str]:
    minutes = -(-request.walltime_seconds // 60)
    return {
        "nodes": "1",
        "ntasks": "1",
        "cpus-per-task": str(request.cores),
        "mem": f"{request.memory_mb}M" if request.memory_mb else "",
        "time": str(minutes) if minutes else "",
        "constraint": request.constraint,
        "gres": request.gres,
    }


def _sacct(names: Iterable[str]) -> list[str]:
    """Return the command line that asks Slurm's accounting for the last states of jobs with these names."""
    return [
        *("sacct", "--allocations", "--noheader", "--parsable2", "--format=JobID,State,JobName"),
        *(f"--starttime=now-{ACCOUNTED_DAYS}days", f"--name={','.join(names)}"),
    ]
