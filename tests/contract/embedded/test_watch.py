"""The watch over a system's servers: what runs and does nothing is started again."""

import os
import signal

import pytest

from tests.conftest import execute
from tests.waiting import eventually
from wms.embedded.server import Program, Server
from wms.embedded.system import System
from wms.embedded.watch import SystemWatch

INSTANCE = """insert into service_instance (instance_id, service, consumers, host, pid, version)
    values ('sleeper-1', 'sleeper', array[]::text[], 'here', {pid}, '0')"""


async def test_what_runs_and_does_nothing_is_killed_and_started_again(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert system.facts is not None
    assert system.postgres is not None
    assert system.broker is not None
    monkeypatch.setattr("wms.embedded.watch.ANSWER_SECONDS", 1.0)
    watch = SystemWatch(
        system.supervisor,
        system.facts.postgres_url,
        ("sleeper",),
        postgres=True,
        broker=system.broker,
        hung_after=1.0,
    )
    sleeper = Program(system.layout.root / "sleeper", name="sleeper", argv=["sleep", "1000"])
    await system.supervisor.add(sleeper)
    # A service that beat once and never again.
    await execute(system.facts.postgres_url, INSTANCE.format(pid=sleeper.pid))
    hanging: list[Server] = [sleeper]
    before = {name: child.starts for name, child in system.state().children.items()}

    async def are_restarted() -> bool:
        await watch.look()
        return all(system.state().children[each.name].starts > before[each.name] for each in hanging)

    await eventually(are_restarted)
    assert system.state().children["broker"].starts == before["broker"]
    hanging = [system.postgres, system.broker]
    for server in hanging:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
    await eventually(are_restarted)
