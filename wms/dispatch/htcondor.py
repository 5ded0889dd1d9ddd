"""Sends pilots as jobs to an HTCondor pool, by its command line tools.

The ad of a pilot's job has the attribute `WmsPilot` with the pilot's id. So one `condor_q` finds all pilots, and one `condor_history` those
that have left the queue. One `condor_submit` reads the description of many pilots from standard input and submits them. Configuration and
token are files of the job. The description and the job's ad hold no secret.
"""

import asyncio
import contextlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

from wms.dispatch.carried_files import BACK, THERE, carried_script, pack_inputs, unpack_outputs
from wms.dispatch.commands import ToolOutput, Tools
from wms.dispatch.direct import WORK, DirectEnd, end_in
from wms.dispatch.job_policy import of_ad
from wms.dispatch.pilot_directories import Places
from wms.dispatch.port import PilotOutput, PilotRequest, PilotSighting, Request, batches, last_line
from wms.dispatch.refusals import SubmitRefused, raise_not_submitted
from wms.dispatch.script import pilot_script
from wms.errors import Rejected, Unavailable, shown
from wms.ids import PilotId
from wms.job.reasons import Code

JOBS_AT_ONCE = 100
HELD_SECONDS = 600
"""After how many seconds HTCondor removes a pilot's job that is in HTCondor's state Held."""
FILES = ("pilot.sh", "config.toml", "token")
ATTRIBUTES = "WmsPilot,ClusterId,ProcId,JobStatus,ExitCode,ExitBySignal,ExitSignal,HoldReason,RemoveReason"
COMMAND = re.compile(r"\+?[A-Za-z][A-Za-z0-9_.]*")
OURS = {"queue", "executable", "arguments", "output", "error", "log", "initialdir", "universe", "+wmspilot"}

REMOVED, COMPLETED, HELD = 3, 4, 5
"""HTCondor's numbers of three job states. A job in state 1 is idle; a job in any other state counts as running."""

State: TypeAlias = Literal["Waiting", "Running", "Done", "Failed", "Aborted"]

HEAD = """\
universe = vanilla
executable = /bin/sh
transfer_executable = false
arguments = pilot.sh
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
max_retries = 0
periodic_remove = JobStatus == 5 && time() - EnteredCurrentStatus > {held}
"""


class CondorPool(NamedTuple):
    """The HTCondor pool that one computing element uses. An empty field leaves the choice to HTCondor's configuration."""

    pool: str = ""
    """The address of the pool's collector."""
    schedd: str = ""
    """The name of the schedd, which keeps the queue of jobs."""


class HTCondorDispatcher:
    """Sends pilots as jobs to an HTCondor pool. Each job runs the command `agent` with `--config FILE`.

    HTCondor's tools get only `environment` as their environment. Pilots have their directories below `directory`. `carried` is a file of
    this machine, such as the agent's program. It is transferred for each pilot under its own name, and `agent` may name it.
    """

    def __init__(
        self,
        pool: CondorPool,
        directory: Path,
        agent: Sequence[str],
        environment: Mapping[str, str],
        carried: Path | None = None,
    ) -> None:
        where = (("-pool", pool.pool), ("-name", pool.schedd))
        self._where = [word for option, name in where if name for word in (option, name)]
        self._places = Places(directory)
        self._agent = tuple(agent)
        self._tools = Tools(environment)
        self._files = FILES if carried is None else (*FILES, str(carried.absolute()))

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        """Submit pilots, many in one call. Return the state of each that was sent or refused."""
        found = {order.pilot_id: self._prepare(order) for order in orders}
        good = [order for order in orders if found[order.pilot_id] is None]
        for some in batches(good, JOBS_AT_ONCE):
            found |= {each.pilot_id: each for each in await self._submit(some)}
        return [sighting for sighting in found.values() if sighting is not None]

    async def follow(self, pilot_ids: Sequence[PilotId]) -> list[PilotSighting]:
        """Return the states of these pilots, from one list of all jobs of this account. Jobs that have left the queue are found in the history."""
        if not pilot_ids:
            return []
        ads = await self._query("condor_q", "WmsPilot =!= undefined")
        for some in batches([each for each in pilot_ids if each not in ads], JOBS_AT_ONCE):
            names = ", ".join(msgspec.json.encode(each).decode() for each in some)
            left = await self._query(
                "condor_history", f"member(WmsPilot, {{{names}}})", "-match", str(len(some))
            )
            ads |= {name: ad for name, ad in left.items() if name not in ads}
        return [self._seen(each, ads[each]) if each in ads else self._lost(each) for each in pilot_ids]

    async def cancel(self, pilot_ids: Sequence[PilotId]) -> None:
        """Remove the jobs of these pilots from the queue. Their job agents get SIGTERM, take no more jobs, and report before they end."""
        ads = await self._query("condor_q", "WmsPilot =!= undefined")
        for some in batches([_number(ads[each]) for each in pilot_ids if each in ads], JOBS_AT_ONCE):
            await self._tools.run("condor_rm", *self._where, *some)

    async def alive(self) -> list[PilotId]:
        """Return all pilots in the queue of this account that have neither ended nor been removed."""
        ads = await self._query("condor_q", "WmsPilot =!= undefined")
        return [name for name, ad in ads.items() if _state(ad) in ("Waiting", "Running")]

    async def outputs(self, pilot_ids: Sequence[PilotId]) -> list[PilotOutput]:
        """Return the end of each pilot's output, which HTCondor transfers back when the job ends. Pilots without output are absent."""
        return await asyncio.to_thread(self._places.outputs, pilot_ids)

    async def forget(self, pilot_ids: Sequence[PilotId]) -> None:
        """Remove tokens and input files of these pilots, which have ended.

        The latest directories of ended pilots are kept for their logs. Older ones are removed, whether their pilots are named or not.
        """
        alive = await self._query("condor_q", "WmsPilot =!= undefined")
        await asyncio.to_thread(self._places.forget, pilot_ids, alive.__contains__)

    async def extend(self, pilot_id: PilotId, number: int, seconds: float) -> None:
        """Do nothing. A job in an HTCondor pool cannot be told that its lease was renewed."""

    async def collect(self, pilot_id: PilotId) -> DirectEnd:
        """Unpack the output that HTCondor transferred back for an ended direct job; return the output's directory and how the job ended."""
        return await asyncio.to_thread(_came_back, self._places.of(pilot_id))

    # --- sending ----------------------------------------------------------------------------------

    def _prepare(self, order: PilotRequest) -> PilotSighting | None:
        """Make a pilot's directory and files. Return None, or the state Failed with the reason if that is impossible."""
        wrong = [
            each for each in order.request.attributes if not COMMAND.fullmatch(each) or each.lower() in OURS
        ]
        if order.request.gres or wrong:
            why = f"no command for a pilot: {', '.join(wrong) or 'generic resources'}"
            return _failed(order.pilot_id, f"not sent: {why}")
        try:
            place = self._places.make(order)
            if order.payload is not None:
                pack_inputs(place / WORK, place / THERE)
                (place / FILES[0]).write_text(carried_script(order.pilot_id, order.payload))
                return None
            config, token = (f'"$PWD/{name}"' for name in FILES[1:])
            (place / FILES[0]).write_text(pilot_script(order, self._agent, config=config, token=token))
        except OSError as error:
            return _failed(order.pilot_id, f"not sent: {error}")
        return None

    async def _submit(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        text = HEAD.format(held=HELD_SECONDS) + "".join(map(self._description, orders))
        said = await self._tools.run("condor_submit", *self._where, "-terse", text=text)
        if said.code:
            return await self._not_submitted(orders, said)
        numbers = _range(said.out)
        return [
            PilotSighting(pilot_id=order.pilot_id, state="Submitted", reference=number)
            for order, number in zip(orders, numbers, strict=False)
        ]

    async def _not_submitted(self, orders: Sequence[PilotRequest], said: ToolOutput) -> list[PilotSighting]:
        """Return the states of pilots whose common submission failed. Raise Unavailable if their jobs may exist."""
        try:
            raise_not_submitted("condor_submit", said)
        except SubmitRefused as why:
            if len(orders) > 1:
                # If one job is refused, all jobs of the call are.
                return [each for order in orders for each in await self._submit([order])]
            self._places.drop_token(orders[0].pilot_id)
            return [_failed(orders[0].pilot_id, f"refused: {why}")]

    def _description(self, order: PilotRequest) -> str:
        log = str(self._places.log_of(order.pilot_id))
        wanted = {
            "initialdir": str(self._places.of(order.pilot_id)),
            "transfer_input_files": ", ".join((FILES[0], THERE) if order.payload else self._files),
            "transfer_output_files": BACK if order.payload else '""',
            "output": log,
            "error": log,
            "+WmsPilot": msgspec.json.encode(order.pilot_id).decode(),
            **{f"+{name}": _text(value) for name, value in of_ad(order.policy).items()},
            **_resources(order.request),
            **order.request.attributes,
        }
        return "".join(f"{name} = {_line(value)}\n" for name, value in wanted.items()) + "queue\n"

    # --- following --------------------------------------------------------------------------------

    async def _query(self, tool: str, constraint: str, *more: str) -> dict[PilotId, Mapping[str, Any]]:
        said = await self._tools.ask(
            tool, *self._where, "-json", "-attributes", ATTRIBUTES, "-constraint", constraint, *more
        )
        try:
            ads = msgspec.json.decode(said.printed) if said.printed.strip() else []
            return {PilotId(str(ad["WmsPilot"])): ad for ad in ads}
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise Unavailable(f"{tool}: an answer that is none of HTCondor's: {error}") from None

    def _seen(self, pilot_id: PilotId, ad: Mapping[str, Any]) -> PilotSighting:
        state, why = _state(ad), ""
        if state in ("Done", "Failed", "Aborted"):
            self._places.drop_token(pilot_id)
        if state in ("Failed", "Aborted"):
            words = (_how_ended(ad), last_line(self._places.output(pilot_id)))
            why = ": ".join(word for word in words if word)
        elif ad.get("JobStatus") == HELD:
            why = shown(f"held: {ad.get('HoldReason', '')}", 300)
        return PilotSighting(pilot_id=pilot_id, state=state, reference=_number(ad), reason=why)

    def _lost(self, pilot_id: PilotId) -> PilotSighting:
        self._places.drop_token(pilot_id)
        return PilotSighting(
            pilot_id=pilot_id, state="Aborted", reason="HTCondor knows no such job", lost=Code.PILOT_FORGOTTEN
        )


def _came_back(place: Path) -> DirectEnd:
    back = place / "back"
    if (place / BACK).exists():
        with contextlib.suppress(Rejected):  # then it left nothing that says how it ended
            unpack_outputs(place / BACK, back)
    return end_in(back)


def _state(ad: Mapping[str, Any]) -> State:
    status = ad.get("JobStatus")
    if status == COMPLETED:
        return "Done" if ad.get("ExitCode") == 0 and not ad.get("ExitBySignal") else "Failed"
    return "Aborted" if status == REMOVED else "Waiting" if status in (1, HELD) else "Running"


def _how_ended(ad: Mapping[str, Any]) -> str:
    if ad.get("JobStatus") == REMOVED:
        return shown(str(ad.get("RemoveReason") or "removed"), 300)
    return f"signal {ad.get('ExitSignal')}" if ad.get("ExitBySignal") else f"exit code {ad.get('ExitCode')}"


def _number(ad: Mapping[str, Any]) -> str:
    return f"{ad.get('ClusterId')}.{ad.get('ProcId')}"


def _range(said: str) -> list[str]:
    """Return the numbers of all submitted jobs, such as 7.0 and 7.1, from the output of `condor_submit -terse`, such as `7.0 - 7.41`."""
    first, _, last = said.strip().splitlines()[-1].partition(" - ")
    cluster, _, low = first.strip().partition(".")
    high = last.strip().partition(".")[2] or low
    return [f"{cluster}.{proc}" for proc in range(int(low), int(high) + 1)]


def _resources(request: Request) -> dict[str, str]:
    wanted = {
        "request_cpus": str(request.cores),
        "request_memory": str(request.memory_mb or ""),
        "allowed_job_duration": str(request.walltime_seconds or ""),
        "requirements": request.constraint,
    }
    return {name: value for name, value in wanted.items() if value}


def _line(value: str) -> str:
    """Return a value on one line. A line break in it would begin another command of the submit description."""
    return " ".join(value.split())


def _text(value: str) -> str:
    """Return a text as a ClassAd string literal. For ASCII text the quoting is that of JSON."""
    return msgspec.json.encode(value).decode()


def _failed(pilot_id: PilotId, reason: str) -> PilotSighting:
    return PilotSighting(pilot_id=pilot_id, state="Failed", reason=reason)
