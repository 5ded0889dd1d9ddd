"""A pilot of `wms up` that is fooled reaches nothing of the system: no key, no password, no server but the gateway."""

import json
import socket
import sys
from pathlib import Path

import psutil
import pytest

from services.pilot_submitter.config import Config
from services.pilot_submitter.configured_endpoints import confinement_of
from tests.services.job_agent.fooled_pilot import PROBE, can_confine
from tests.waiting import eventually
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.port import PilotRequest
from wms.embedded.layout import service
from wms.embedded.leftover_processes import members
from wms.embedded.system import System
from wms.ids import PilotId
from wms.runtime.config import read


@pytest.mark.skipif(bool(can_confine()), reason=can_confine())
async def test_a_fooled_pilot_has_nothing_to_give_away(tmp_path: Path) -> None:
    own = System(tmp_path / "own", durable=False, services=("job_manager",), pilots={"isolation": "required"})
    async with own as system:
        assert system.facts is not None
        file = service("pilot_submitter", system.facts).data_dir / "config.toml"
        config = read(file, Config, {})
        servers = members(system.supervisor.system)
        sockets = _sockets(system.layout.root)
        assert len(sockets) >= 2, "those of Postgres and of the broker"
        told = {
            "root": str(system.layout.root),
            "sockets": sockets,
            "pids": [each.pid for each in servers],
        }
        agent = [sys.executable, str(PROBE), json.dumps(told)]
        dispatcher = LocalDispatcher(
            system.layout.pilots, agent, {"PATH": "/usr/bin:/bin"}, confinement_of(config, [*agent[:2]])
        )
        pilot_id = PilotId("p-fooled")
        order = PilotRequest(pilot_id=pilot_id, site="local", ce="local", slots=1, config="", token="t0ken")
        await dispatcher.send([order])

        async def has_ended() -> bool:
            return (await dispatcher.follow([pilot_id]))[0].ended

        await eventually(has_ended, within=60)
        (output,) = await dispatcher.outputs([pilot_id])
        found = json.loads(output.text)
        assert found.pop("pids") <= 4
        assert found == {
            "files": [],
            "below": ["files", "pilots"],
            "writable": [],
            "reached": [],
            "taken_away": [],
        }
        listening = {
            each.laddr.port
            for server in servers
            for each in server.net_connections("tcp")
            if each.status == psutil.CONN_LISTEN
        }
        assert [port for port in listening if _answers(port)] == [], (
            "the gateway, which is not up, alone would"
        )


def _sockets(root: Path) -> list[str]:
    """Return the sockets of a system's servers: in their directories, or where these name, if their paths are too long."""
    elsewhere = [Path(each.read_text().strip()) for each in root.glob("*/sockets") if each.is_file()]
    return [str(each) for place in (root, *elsewhere) for each in place.rglob("*") if each.is_socket()]


def _answers(port: int) -> bool:
    with socket.socket() as each:
        return each.connect_ex(("127.0.0.1", port)) == 0
