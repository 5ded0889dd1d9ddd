"""Starts pilots as processes of this machine, each with a directory of its own.

The directory holds its log, and a file with the pid and the start time of the process. By that file a later dispatcher finds the process
again, and does not mistake another process with the same pid for it. In the subdirectory OWN are the agent's configuration and token (mode
0600), and its jobs. A confined pilot sees that subdirectory alone, and in no other can it change what this process reads.
"""

import asyncio
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

from wms.dispatch.confinement import Confinement, OwnConfinement
from wms.dispatch.direct import end_in
from wms.dispatch.direct_script import direct_script
from wms.dispatch.job_policy import environment
from wms.dispatch.pilot_directories import Places
from wms.dispatch.port import PilotOutput, PilotRequest, PilotSighting, last_line
from wms.dispatch.shared_directories import SharedDirectories
from wms.files import write_secret
from wms.ids import PilotId

JOBS_VARIABLE = "WMS_PILOT__DIRECTORY"
OWN = "own"
"""The name of the subdirectory that belongs to the pilot."""


class _Mark(msgspec.Struct, frozen=True):
    """The pid of a pilot's process, and when it started, in seconds since 1970."""

    pid: int
    started_at: float


class LocalDispatcher(SharedDirectories):
    """Starts pilots as processes of this machine. Each process runs the command `agent` with `--config FILE`.

    Pilots get only `environment` and a few variables of their own as their environment. Their directories are below `directory`.
    Each starts in a confinement; None: without one, and without the process that ends it with the system.
    """

    def __init__(
        self,
        directory: Path,
        agent: Sequence[str],
        environment: Mapping[str, str],
        confinement: Confinement | None = None,
    ) -> None:
        self._places = Places(directory, OWN)
        self._confinement = confinement
        self._agent = tuple(agent)
        self._environment = dict(environment)
        self._children: dict[PilotId, subprocess.Popen[bytes]] = {}

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        """Start a process for each pilot; return the state of each."""
        return await asyncio.to_thread(lambda: [self._start(order) for order in orders])

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[PilotSighting]:
        """Return the states of these pilots, by their processes, or by the exit codes of processes that have ended."""
        return await asyncio.to_thread(lambda: [self._look(pilot_id) for pilot_id in pilot_ids])

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        """Send SIGTERM to the processes of these pilots. Their job agents take no more jobs, and report before they end."""
        for pilot_id in pilot_ids:
            process = self._process(pilot_id)
            if process is not None:
                process.send_signal(signal.SIGTERM)

    async def outputs(self, pilot_ids: Sequence[PilotId]) -> list[PilotOutput]:
        """Return the end of each pilot's output, from its directory. Pilots without output are absent."""
        return await asyncio.to_thread(self._places.outputs, pilot_ids)

    async def forget(self, pilot_ids: Sequence[PilotId]) -> None:
        """Remove tokens and input files of these pilots, which have ended.

        The latest directories of ended pilots are kept for their logs. Older ones are removed, whether their pilots are named or not.
        """
        for pilot_id in pilot_ids:
            if self._exit_code(pilot_id) is not None:
                del self._children[pilot_id]
        await asyncio.to_thread(
            self._places.forget, pilot_ids, lambda pilot_id: self._process(pilot_id) is not None
        )

    async def alive(self) -> list[PilotId]:
        """Return the pilots whose processes are alive, of all that have directories here. A pilot started by an earlier dispatcher counts, too."""
        return await asyncio.to_thread(self._alive)

    def _alive(self) -> list[PilotId]:
        return [pilot_id for pilot_id in self._places.known() if self._process(pilot_id) is not None]

    def _start(self, order: PilotRequest) -> PilotSighting:
        try:
            place = self._places.make(order)
            self._give(order)
            child = self._run(order, place)
            mark = _Mark(child.pid, psutil.Process(child.pid).create_time())
            write_secret(place / "process", msgspec.json.encode(mark).decode(), durable=False)
        except (OSError, psutil.Error) as error:
            return PilotSighting(pilot_id=order.pilot_id, state="Failed", reason=f"not started: {error}")
        self._children[order.pilot_id] = child
        return PilotSighting(pilot_id=order.pilot_id, state="Submitted", reference=str(child.pid))

    def _give(self, order: PilotRequest) -> None:
        """Make the pilot's account the owner of what is its own."""
        owner = self._confinement.owner if self._confinement else None
        if order.payload is not None or owner is None:
            return
        own = self._places.own_of(order.pilot_id)
        for each in (*own.iterdir(), own):
            os.chown(each, owner, owner, follow_symlinks=False)

    def _run(self, order: PilotRequest, place: Path) -> subprocess.Popen[bytes]:
        ours = {
            "WMS_PILOT": order.pilot_id,
            **environment(order.policy),
            "WMS_PILOT_ELEMENT": f"{order.site}/{order.ce}",
            "WMS_PILOT__TOKEN_FILE": str(place / OWN / "token"),
            JOBS_VARIABLE: str(place / OWN / "jobs"),
        }
        with self._places.log_of(order.pilot_id).open("ab") as log:
            return subprocess.Popen(
                self._command(order, place),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=place,
                env={**self._environment, **ours},
                start_new_session=True,
            )

    def _command(self, order: PilotRequest, place: Path) -> list[str]:
        if order.payload is None:
            agent = [*self._agent, "--config", str(place / OWN / "config.toml")]
            return confined_argv(self._confinement, place / OWN, agent) if self._confinement else agent
        script = direct_script(order.pilot_id, order.payload, place=shlex.quote(str(place)))
        (place / "job.sh").write_text(script)
        return ["/bin/sh", str(place / "job.sh")]

    def _look(self, pilot_id: PilotId) -> PilotSighting:
        code = self._exit_code(pilot_id)
        if code is None and self._process(pilot_id) is None:
            code = end_in(self._places.of(pilot_id)).exit_code  # of a job that another process started
        if code is not None:
            self._places.drop_token(pilot_id)
            return _ended(pilot_id, code, last_line(self._places.output(pilot_id)))
        # A child of this process that is not reaped runs, or its exit code is about to be read.
        if pilot_id in self._children or self._process(pilot_id) is not None:
            return PilotSighting(pilot_id=pilot_id, state="Running")
        return PilotSighting(pilot_id=pilot_id, state="Aborted", reason="no such process")

    def _exit_code(self, pilot_id: PilotId) -> int | None:
        # Reported until it is forgotten, since the caller may have failed before it stored the state.
        child = self._children.get(pilot_id)
        return child.poll() if child is not None else None

    def _process(self, pilot_id: PilotId) -> psutil.Process | None:
        place = self._places.of(pilot_id)
        if place.is_dir() and not (place / "process").exists():
            # The dispatcher died before it wrote the pid. A living pilot must not be reported as ended.
            return _bearing(pilot_id, place / OWN / "jobs")
        try:
            mark = msgspec.json.decode((place / "process").read_bytes(), type=_Mark)
            process = psutil.Process(mark.pid)
            same = abs(process.create_time() - mark.started_at) < 1.0
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except (OSError, msgspec.DecodeError, psutil.Error):
            return None


def _bearing(pilot_id: PilotId, jobs: Path) -> psutil.Process | None:
    """Return the living process whose environment names this pilot and the directory `jobs`; None if there is none.

    The pilot's id alone does not suffice, since another wms on this machine may use it, too.
    """
    for process in psutil.process_iter():
        try:
            told = process.environ()
            named = told.get("WMS_PILOT") == pilot_id and told.get(JOBS_VARIABLE) == str(jobs)
            if named and process.status() != psutil.STATUS_ZOMBIE:
                return process
        except (OSError, psutil.Error):
            continue
    return None


def _ended(pilot_id: PilotId, code: int, last_words: str) -> PilotSighting:
    if code == 0:
        return PilotSighting(pilot_id=pilot_id, state="Done")
    how = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return PilotSighting(
        pilot_id=pilot_id, state="Failed", reason=f"{how}: {last_words}" if last_words else how
    )


def confined_argv(confinement: Confinement, own: Path, command: Sequence[str]) -> list[str]:
    """Return the command line that runs a pilot's command in a confinement with the directory `own`."""
    whole = OwnConfinement(own=str(own), **msgspec.structs.asdict(confinement))
    program = [sys.executable, "-P", "-m", "services.job_agent.confinement"]
    return [*program, msgspec.json.encode(whole).decode(), *command]


def agent_argv() -> list[str]:
    """Return the command line that starts a job agent, the program of a pilot, with the Python of this process."""
    return [sys.executable, "-m", "services.job_agent"]
