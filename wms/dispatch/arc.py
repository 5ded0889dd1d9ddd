"""Sends pilots as jobs to an ARC computing element (A-REX) over its REST interface.

The name of a pilot's job is the pilot's id. The ids that the element gives to jobs are kept in memory. After a crash the dispatcher lists
all its jobs and reads their names. One description submits many pilots, and one call asks for many. The state that an element reports of a
job may be a minute old.

Script, configuration and token are uploaded into the job's session directory, which only the job's user can read. If the upload does not
follow because the sender died, A-REX fails the job after ten minutes.
"""

import asyncio
import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from wms.dispatch import arc_staging
from wms.dispatch.arc_rest import ArcEndpoint, ArcJobStatus, ArcRest
from wms.dispatch.carried_files import BACK, BACK_LIMIT, THERE, carried_script, pack_inputs, unpack_outputs
from wms.dispatch.direct import DirectEnd, DirectPayload, end_in
from wms.dispatch.job_policy import environment
from wms.dispatch.port import (
    OUTPUT_LIMIT,
    PilotOutput,
    PilotRequest,
    PilotSighting,
    Request,
    batches,
    last_line,
    settled,
)
from wms.dispatch.script import pilot_script
from wms.errors import Rejected, shown
from wms.ids import PilotId
from wms.job.reasons import Code

JOBS_AT_ONCE = 200
"""How many jobs one call to the computing element names at most."""
FILES = ("pilot.sh", "config.toml", "token")
"""The files that are uploaded for a pilot. The token is uploaded last, since A-REX starts the job once all files are there."""

NAMELESS = "nameless "
NODE_FAILURE = re.compile(r"\bnode.?fail", re.IGNORECASE)
"""What A-REX writes in a job's errors when its batch system has lost the job's node. A-REX has no error code for it."""

State: TypeAlias = Literal["Waiting", "Running", "Done", "Failed", "Aborted"]

STATES: Mapping[str, State] = {
    **dict.fromkeys(("ACCEPTING", "ACCEPTED", "PREPARING", "PREPARED", "SUBMITTING", "QUEUING", "HELD"), "Waiting"),
    **dict.fromkeys(("RUNNING", "OTHER", "EXITINGLRMS", "EXECUTED", "FINISHING", "KILLING"), "Running"),
    "FINISHED": "Done",
    "FAILED": "Failed",
    **dict.fromkeys(("KILLED", "WIPED"), "Aborted"),
}  # fmt: skip
"""A pilot's state, as all dispatchers report it, for each job state of ARC. A job in any other state counts as running."""


class ArcDispatcher:
    """Sends pilots to one ARC element. A pilot is a job that runs the command `agent` with `--config FILE`.

    `carried` is a file of this machine, such as the agent's program. It is uploaded for each pilot under its own name, and `agent` may name it.
    `stages` says whether the element stages data: it then moves files by URL for jobs that are sent directly.
    """

    def __init__(
        self, element: ArcEndpoint, agent: Sequence[str], carried: Path | None = None, *, stages: bool = False
    ) -> None:
        self._element = element
        self._agent = tuple(agent)
        self._carried = carried
        self._stages = stages
        self._jobs: dict[PilotId, str] = {}
        self._collected: dict[PilotId, tempfile.TemporaryDirectory[str]] = {}
        """For each job sent directly, the temporary directory with its unpacked output."""
        self._unfed: set[PilotId] = set()
        """Pilots whose jobs were created, but whose files could not be uploaded. `follow` kills their jobs, as they would never start."""

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        """Submit pilots, many in one call, and upload their files. Return the state of each that was sent or refused."""
        faults = {order.pilot_id: why for order in orders if (why := self._fault(order))}
        found = {pilot_id: _failed(pilot_id, why) for pilot_id, why in faults.items()}
        good = [order for order in orders if order.pilot_id not in faults]
        async with ArcRest(self._element) as rest:
            for some in batches(good, JOBS_AT_ONCE):
                found |= {each.pilot_id: each for each in await self._submit(rest, some)}
        return [found[order.pilot_id] for order in orders if order.pilot_id in found]

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[PilotSighting]:
        """Return the states of these pilots. For a pilot whose job has ended, the state also says how it ended."""
        if not pilot_ids:
            return []
        async with ArcRest(self._element) as rest:
            await self._end_unfed(rest, pilot_ids)
            states = await self._ask(rest, "status", pilot_ids)
            ends = await self._ask(rest, "info", [each for each in states if _is_over(states[each])])
            return [
                await self._sighting(rest, each, states[each], ends.get(each))
                if each in states
                else _lost(each)
                for each in pilot_ids
            ]

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        """Kill the jobs of these pilots. Their job agents get SIGTERM, take no more jobs, and report before they end."""
        async with ArcRest(self._element) as rest:
            await self._ask(rest, "kill", pilot_ids)

    async def alive(self) -> list[PilotId]:
        """Return the pilots that have not ended, by the jobs that the element lists under this account, whoever submitted them."""
        async with ArcRest(self._element) as rest:
            listed = await self._learn_all(rest)
            # A job without a known name may be no pilot.
            named = [
                name for name, job in self._jobs.items() if job in listed and not name.startswith(NAMELESS)
            ]
            states = await self._ask(rest, "status", named)
        return [name for name, answer in states.items() if answer.code < 300 and not _is_over(answer)]

    async def outputs(self, pilot_ids: Sequence[PilotId]) -> list[PilotOutput]:
        """Fetch the end of each pilot's output from its session directory at the computing element. Pilots without output are absent."""
        async with ArcRest(self._element) as rest:
            known = await self._known(rest, pilot_ids)
            texts = await asyncio.gather(*(self._output(rest, each) for each in known))
        return [
            PilotOutput(pilot_id=each, text=text) for each, text in zip(known, texts, strict=True) if text
        ]

    async def extend(self, pilot_id: PilotId, number: int, seconds: float) -> None:
        """Do nothing. A job at an ARC element cannot be told that its lease was renewed."""

    def staging_fault(self, name: str, url: str, checksum: str = "") -> str:
        """Return why the element cannot move the file `name` from or to a URL, or not verify its checksum; empty if it can."""
        if not self._stages:
            return "this ARC element is not configured to stage files (`staging`)"
        return arc_staging.staging_fault(name, url, checksum)

    async def collect(self, pilot_id: PilotId) -> DirectEnd:
        """Fetch the output of an ended job that was sent directly, and unpack it into a temporary directory of this machine.

        `forget` removes the directory. If there is no output, or unpacking it would be unsafe, the returned exit code is None.
        """
        place = self._collected.setdefault(pilot_id, tempfile.TemporaryDirectory(prefix="wms-direct-"))
        archive, back = Path(place.name) / BACK, Path(place.name) / "back"
        async with ArcRest(self._element) as rest:
            if await self._known(rest, [pilot_id]):
                await rest.fetch(self._jobs[pilot_id], BACK, archive, BACK_LIMIT)
        if archive.exists():
            with contextlib.suppress(Rejected):  # then it left nothing that says how it ended
                await asyncio.to_thread(unpack_outputs, archive, back)
        return end_in(back)

    async def forget(self, pilot_ids: Sequence[PilotId]) -> None:
        """Have the element remove the session directories of these pilots, which have ended. Remove what `collect` unpacked for them."""
        if not pilot_ids:
            return
        async with ArcRest(self._element) as rest:
            await self._ask(rest, "clean", pilot_ids)
        for pilot_id in pilot_ids:
            self._jobs.pop(pilot_id, None)
            if place := self._collected.pop(pilot_id, None):
                place.cleanup()

    # --- sending ----------------------------------------------------------------------------------

    def _fault(self, order: PilotRequest) -> str:
        """Return why a pilot cannot be sent, such as a request that ARC cannot express; empty if it can be sent."""
        if order.pilot_id in self._jobs:
            return "not sent: it was before"
        if order.request.constraint or order.request.gres:
            return "not sent: ARC has no word for a batch system's constraints and generic resources"
        return ""

    async def _submit(self, rest: ArcRest, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        answers = await rest.create([self._xrsl(order) for order in orders])
        # If answers are missing, `follow` finds the jobs of the others by their names, or none.
        pairs = zip(orders, answers, strict=False)
        settling = (self._settle(rest, order, answer) for order, answer in pairs)
        return settled(await asyncio.gather(*settling, return_exceptions=True))

    async def _settle(self, rest: ArcRest, order: PilotRequest, answer: ArcJobStatus) -> PilotSighting:
        if answer.code != 201:
            return _failed(order.pilot_id, f"refused: {answer.reason}")
        self._jobs[order.pilot_id] = answer.job
        try:
            for name, content in (await asyncio.to_thread(self._files, order)).items():
                await rest.put(answer.job, name, content)
        except BaseException:
            self._unfed.add(order.pilot_id)
            raise
        return PilotSighting(pilot_id=order.pilot_id, state="Submitted", reference=answer.job)

    def _files(self, order: PilotRequest) -> dict[str, bytes]:
        """Return the contents of the files to upload for a pilot or a direct job, by name. The call blocks."""
        if order.payload is not None:
            with tempfile.TemporaryDirectory() as place:
                archive = Path(place) / THERE
                pack_inputs(order.payload.inputs, archive)
                shutil.rmtree(order.payload.inputs)
                return {
                    FILES[0]: _direct_script(order.pilot_id, order.payload).encode(),
                    THERE: archive.read_bytes(),
                }
        config, token = (f'"$PWD/{name}"' for name in FILES[1:])
        script = pilot_script(order, self._agent, config=config, token=token)
        more = {} if self._carried is None else {self._carried.name: self._carried.read_bytes()}
        ours = (script.encode(), order.config.encode(), order.token.encode())
        return {**more, **dict(zip(FILES, ours, strict=True))}

    def _xrsl(self, order: PilotRequest) -> str:
        wanted = {
            "jobname": order.pilot_id,
            "executable": FILES[0],
            # The same file for both, since A-REX 6.17 ignores `join`.
            "stdout": "log",
            "stderr": "log",
            "queue": self._element.queue,
            **_resources(order.request),
            **order.request.attributes,
        }
        relations = "".join(f"({name}={_quoted(value)})" for name, value in wanted.items() if value)
        more = () if self._carried is None else (self._carried.name,)
        files, back = ((FILES[0], THERE), ("log", BACK)) if order.payload else ((*more, *FILES), ("log",))
        inputs, outputs = ("".join(f'("{name}" "")' for name in names) for names in (files, back))
        if order.payload:
            inputs += arc_staging.input_relations(order.payload.staged)
            outputs += arc_staging.output_relations(order.payload.staged)
        variables = "".join(
            f"({_quoted(name)} {_quoted(value)})" for name, value in environment(order.policy).items()
        )
        told = f"(environment={variables})" if variables else ""
        return f"&{relations}{told}(inputFiles={inputs})(outputFiles={outputs})"

    # --- following --------------------------------------------------------------------------------

    async def _end_unfed(self, rest: ArcRest, pilot_ids: Sequence[PilotId]) -> None:
        if unfed := [each for each in pilot_ids if each in self._unfed]:
            await self._ask(rest, "kill", unfed)
            self._unfed.difference_update(unfed)

    async def _known(self, rest: ArcRest, pilot_ids: Sequence[PilotId]) -> list[PilotId]:
        """Return those of these pilots that have jobs at the element. If an id of ARC is missing for any, read the names of all listed jobs first."""
        if any(pilot_id not in self._jobs for pilot_id in pilot_ids):
            await self._learn_all(rest)
        return [pilot_id for pilot_id in pilot_ids if pilot_id in self._jobs]

    async def _learn_all(self, rest: ArcRest) -> set[str]:
        """Return ARC's ids of all jobs that the element lists under this account.

        Read the names of the jobs that are new here, and remember which pilots they are.
        """
        listed = await rest.jobs()
        strangers = sorted(listed - set(self._jobs.values()))
        for some in batches(strangers, JOBS_AT_ONCE):
            self._learn(zip(some, await rest.ask("info", some), strict=False))
        return listed

    def _learn(self, told: Iterable[tuple[str, ArcJobStatus]]) -> None:
        for job, answer in told:
            # A job without a pilot's name is remembered, too, so that its name is read once.
            name = str(answer.activity.get("Name") or f"{NAMELESS}{job}")
            self._jobs.setdefault(PilotId(name), job)

    async def _ask(
        self, rest: ArcRest, action: str, pilot_ids: Sequence[PilotId]
    ) -> dict[PilotId, ArcJobStatus]:
        found: dict[PilotId, ArcJobStatus] = {}
        for some in batches(await self._known(rest, pilot_ids), JOBS_AT_ONCE):
            answers = await rest.ask(action, [self._jobs[each] for each in some])
            found |= dict(zip(some, answers, strict=False))
        return found

    async def _sighting(
        self, rest: ArcRest, pilot_id: PilotId, answer: ArcJobStatus, end: ArcJobStatus | None
    ) -> PilotSighting:
        if answer.code == 404:
            return _lost(pilot_id)
        state, why = STATES.get(answer.state, "Running"), ""
        if end is not None:
            code = str(end.activity.get("ExitCode") or "0")
            state = "Failed" if state == "Done" and code != "0" else state
            why = "" if state == "Done" else await self._why(rest, pilot_id, end, code)
        return PilotSighting(
            pilot_id=pilot_id,
            state=state,
            reference=self._jobs[pilot_id],
            reason=why,
            lost=Code.NODE_LOST if state == "Failed" and NODE_FAILURE.search(why) else None,
            staging=arc_staging.staging_of(why) if state == "Failed" else "",
        )

    async def _why(self, rest: ArcRest, pilot_id: PilotId, end: ArcJobStatus, code: str) -> str:
        errors = end.activity.get("Error", "")
        said = errors if isinstance(errors, str) else "; ".join(map(str, errors))
        words = (
            f"exit code {code}" if code != "0" else "",
            said,
            last_line(await self._output(rest, pilot_id)),
        )
        return shown(": ".join(word for word in words if word) or "killed", 600)

    async def _output(self, rest: ArcRest, pilot_id: PilotId) -> str:
        return await rest.tail(self._jobs[pilot_id], "log", OUTPUT_LIMIT)


def _direct_script(name: str, payload: DirectPayload) -> str:
    staged = payload.staged
    return carried_script(
        name,
        payload,
        preparation=arc_staging.preparation(staged),
        conclusion=arc_staging.conclusion(staged),
        left_out=arc_staging.STAGED if staged else "",
    )


def _is_over(answer: ArcJobStatus) -> bool:
    return STATES.get(answer.state) in ("Done", "Failed", "Aborted")


def _resources(request: Request) -> dict[str, str]:
    minutes = -(-request.walltime_seconds // 60)
    return {
        "count": str(request.cores),
        "countpernode": str(request.cores) if request.cores > 1 else "",
        # The memory of each of the `count` processors.
        "memory": str(-(-request.memory_mb // request.cores)) if request.memory_mb else "",
        "walltime": f"{minutes} minutes" if minutes else "",
    }


def _quoted(value: str) -> str:
    return '"' + value.replace('"', '""') + '"'


def _failed(pilot_id: PilotId, reason: str) -> PilotSighting:
    return PilotSighting(pilot_id=pilot_id, state="Failed", reason=reason)


def _lost(pilot_id: PilotId) -> PilotSighting:
    return PilotSighting(
        pilot_id=pilot_id, state="Aborted", reason="ARC knows no such job", lost=Code.PILOT_FORGOTTEN
    )
