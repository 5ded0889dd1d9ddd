"""Pilots as processes of this machine, with a small program in the job agent's place."""

import os
import signal
import stat
from pathlib import Path

import psutil

from tests.contract.dispatch.processes import WAITS, order, running
from tests.waiting import eventually
from wms.dispatch.local import OWN, LocalDispatcher
from wms.dispatch.port import PilotSighting
from wms.ids import PilotId

FAILS = "import sys; sys.exit('no broker answers')"


async def look(dispatcher: LocalDispatcher, name: str) -> PilotSighting:
    (sighting,) = await dispatcher.follow([PilotId(name)])
    return sighting


async def test_a_pilot_runs_until_it_is_cancelled(dispatcher: LocalDispatcher, tmp_path: Path) -> None:
    (sent,) = await dispatcher.send([order("p1")])
    assert sent.state == "Submitted"
    assert (await look(dispatcher, "p1")).state == "Running"
    # Its signal handler must be there before it is told to end.
    process = psutil.Process(int(sent.reference or 0))
    await eventually(lambda: process.status() == psutil.STATUS_SLEEPING)
    await dispatcher.cancel([PilotId("p1")])

    async def over() -> bool:
        return (await look(dispatcher, "p1")).ended

    await eventually(over)
    assert not (tmp_path / "p1" / OWN / "token").exists(), "a token must not outlive its pilot"


async def test_what_is_secret_is_ours_alone_and_on_no_command_line(
    dispatcher: LocalDispatcher, tmp_path: Path
) -> None:
    (sent,) = await dispatcher.send([order("p1")])
    for name in ("token", "config.toml"):
        assert stat.S_IMODE((tmp_path / "p1" / OWN / name).stat().st_mode) == 0o600
    process = psutil.Process(int(sent.reference or 0))
    assert "t0ken" not in " ".join(process.cmdline())
    assert "t0ken" not in str(process.environ())


async def test_another_dispatcher_finds_the_pilot_again(dispatcher: LocalDispatcher, tmp_path: Path) -> None:
    await dispatcher.send([order("p1")])
    successor = running(WAITS, tmp_path)
    assert (await look(successor, "p1")).state == "Running"
    assert await successor.alive() == [PilotId("p1")]


async def test_a_pilot_whose_number_was_not_written_is_found_and_another_systems_is_not(
    dispatcher: LocalDispatcher, tmp_path: Path
) -> None:
    await dispatcher.send([order("p1")])
    (tmp_path / "p1" / "process").unlink()

    async def is_found() -> bool:
        return await dispatcher.alive() == [PilotId("p1")]

    await eventually(is_found)
    (tmp_path / "another" / "p1").mkdir(parents=True)
    assert await running(WAITS, tmp_path / "another").alive() == []


async def test_a_pilot_never_sent_is_aborted(dispatcher: LocalDispatcher) -> None:
    sighting = await look(dispatcher, "never")
    assert (sighting.state, sighting.reason) == ("Aborted", "no such process")


async def test_a_killed_pilot_failed_by_its_signal(dispatcher: LocalDispatcher) -> None:
    (sent,) = await dispatcher.send([order("p1")])
    os.kill(int(sent.reference or 0), signal.SIGKILL)
    seen: list[PilotSighting] = []

    async def failed() -> bool:
        seen.append(await look(dispatcher, "p1"))
        return seen[-1].ended

    await eventually(failed)
    assert seen[-1].state == "Failed"
    assert "SIGKILL" in seen[-1].reason


async def test_a_pilot_that_fails_says_why_by_its_last_line(tmp_path: Path) -> None:
    dispatcher = running(FAILS, tmp_path)
    await dispatcher.send([order("p1")])
    seen: list[PilotSighting] = []

    async def failed() -> bool:
        seen.append(await look(dispatcher, "p1"))
        return seen[-1].ended

    await eventually(failed)
    assert seen[-1].reason == "exit code 1: no broker answers"


async def test_how_a_pilot_ended_is_told_until_it_is_forgotten(tmp_path: Path) -> None:
    dispatcher = running(FAILS, tmp_path)
    await dispatcher.send([order("p1")])

    async def failed() -> bool:
        return (await look(dispatcher, "p1")).state == "Failed"

    await eventually(failed)
    assert (await look(dispatcher, "p1")).reason == "exit code 1: no broker answers"
    await dispatcher.forget([PilotId("p1")])
    assert (await look(dispatcher, "p1")).state == "Aborted"


async def test_a_pilot_that_lives_is_not_forgotten(dispatcher: LocalDispatcher) -> None:
    await dispatcher.send([order("p1")])
    await dispatcher.forget([PilotId("p1")])
    assert (await look(dispatcher, "p1")).state == "Running"


async def test_the_same_pilot_is_not_started_twice(dispatcher: LocalDispatcher) -> None:
    await dispatcher.send([order("p1")])
    (again,) = await dispatcher.send([order("p1")])
    assert again.state == "Failed"
    assert len(await dispatcher.alive()) == 1
