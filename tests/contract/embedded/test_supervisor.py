"""The supervisor starts again what died, tells how it goes, and leaves nothing behind, however it ends."""

import itertools
import os
import shutil
import signal
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.waiting import eventually
from wms.embedded.lock import holder
from wms.embedded.server import Program
from wms.embedded.supervisor import Supervisor, read_state
from wms.errors import Rejected

SLEEP = ["sleep", "1000"]


@pytest_asyncio.fixture(loop_scope="session")
async def supervisor(tmp_dir: Path) -> AsyncIterator[Supervisor]:
    each = Supervisor(tmp_dir / "system")
    await each.open()
    yield each
    await each.close()


def program(supervisor: Supervisor, name: str, argv: list[str]) -> Program:
    return Program(supervisor.data_dir / name, name=name, argv=argv)


async def test_what_was_killed_is_started_again_and_written_down(supervisor: Supervisor) -> None:
    server = program(supervisor, "one", SLEEP)
    await supervisor.add(server)
    first = server.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: server.running and server.pid != first)
    await eventually(lambda: supervisor.state().children["one"].starts == 2)
    state = read_state(supervisor.data_dir)
    assert state is not None
    assert state.pid == os.getpid()
    assert state.children["one"].pid == server.pid
    assert state.children["one"].last_exit == -signal.SIGKILL
    assert stat.S_IMODE((supervisor.data_dir / "state.json").stat().st_mode) == 0o600


async def test_what_dies_at_once_is_started_ever_more_slowly(supervisor: Supervisor) -> None:
    await supervisor.add(program(supervisor, "doomed", ["sh", "-c", "date +%s.%N >> starts; exit 3"]))
    starts = supervisor.data_dir / "doomed" / "starts"
    await eventually(lambda: len(read_times(starts)) >= 4, within=15)
    pauses = [later - earlier for earlier, later in itertools.pairwise(read_times(starts))]
    assert pauses[0] >= 0.1
    assert pauses[1] >= 0.2
    assert pauses[2] >= 0.4
    assert supervisor.state().children["doomed"].last_exit == 3


async def test_on_a_full_disk_what_dies_is_started_again_and_written_down_later(
    supervisor: Supervisor,
) -> None:
    """A directory in the place of the state file stands for the full disk: nothing can be written there."""
    server = program(supervisor, "one", SLEEP)
    await supervisor.add(server)
    first = server.pid
    assert first is not None
    state_file = supervisor.data_dir / "state.json"
    state_file.unlink()
    (state_file / "full").mkdir(parents=True)
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: server.running and server.pid != first)
    second = server.pid
    assert second is not None
    os.kill(second, signal.SIGKILL)
    await eventually(lambda: server.running and server.pid != second)
    shutil.rmtree(state_file)

    def is_written() -> bool:
        state = read_state(supervisor.data_dir)
        return state is not None and state.children["one"].pid == server.pid and state.written_at > 0

    await eventually(is_written)


async def test_what_cannot_be_started_again_is_tried_until_it_can(supervisor: Supervisor) -> None:
    server = program(supervisor, "one", SLEEP)
    await supervisor.add(server)
    first = server.pid
    assert first is not None
    # No log can be opened, as on a disk without room for one more file.
    server.log_path.unlink()
    server.log_path.mkdir()
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: "directory" in supervisor.state().children["one"].last_error)
    server.log_path.rmdir()
    await eventually(lambda: server.running and server.pid != first)


async def test_a_server_that_does_not_work_is_killed_and_started_again(supervisor: Supervisor) -> None:
    server = program(supervisor, "one", SLEEP)
    await supervisor.add(server)
    first = server.pid
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    await supervisor.restart("one", "it hangs")
    await eventually(lambda: server.running and server.pid != first)


def read_times(path: Path) -> list[float]:
    return [float(line) for line in path.read_text().split()] if path.exists() else []


async def test_second_supervisor_is_refused_by_name(supervisor: Supervisor) -> None:
    with pytest.raises(Rejected, match=rf"in use by process {os.getpid()}"):
        await Supervisor(supervisor.data_dir).open()
    assert holder(supervisor.data_dir / "up.lock") == os.getpid()


async def test_stops_in_reverse_order_and_by_force_where_needed(tmp_dir: Path) -> None:
    supervisor = Supervisor(tmp_dir)
    await supervisor.open()
    trap = "trap 'echo {0} >> ../order; exit 0' TERM; touch ready; while :; do sleep 0.01; done"
    for name in ("first", "second"):
        ready = tmp_dir / name / "ready"
        await supervisor.add(
            Program(tmp_dir / name, name=name, argv=["sh", "-c", trap.format(name)], ready=ready.exists)
        )
    deaf = Program(
        tmp_dir / "deaf",
        name="deaf",
        argv=["sh", "-c", "trap '' TERM; touch ready; while :; do sleep 0.01; done"],
        ready=(tmp_dir / "deaf" / "ready").exists,
    )
    deaf.stop_grace = 0.2
    await supervisor.add(deaf)
    await supervisor.close()
    assert (tmp_dir / "order").read_text().split() == ["second", "first"]
    assert not deaf.running
    assert holder(tmp_dir / "up.lock") is None
