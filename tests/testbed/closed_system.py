"""A system whose pilots run on nodes in a closed network: they start from one file, and reach the gateway over HTTPS and nothing else."""

import asyncio
import contextlib
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from deploy.agent_file.build import build
from deploy.testbed.certificates import Authority
from deploy.testbed.closed_network import ClosedNetwork
from tests.middleware import ROOT, Sites
from tests.testbed.everywhere import advertise, software
from wms.embedded import layout as plan
from wms.embedded.server import Program, settle_port
from wms.embedded.system import System
from wms.files import Table, to_toml

HIDDEN = "system/own"
"""The directory of the system, below the testbed's. The nodes find it empty."""
KINDS = {"alpha": "slurm", "arc": "arc"}
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
SLOTS = 8
PILOTS: Table = {
    "link": "gateway",
    "idle_seconds": 5.0,
    "silent_seconds": 10.0,
    "lingering_seconds": 30.0,
    "most": 32,
    "local_sites": [],
}


@contextlib.asynccontextmanager
async def closed_system(testbed: Sites, network: ClosedNetwork) -> AsyncIterator[System]:
    """Bring up a system of which `network` reaches the gateway alone, though the broker listens to every user of this machine."""
    place = testbed.root / "system"
    authority = testbed.root / "gateway.pem"
    gateway = _encrypted(place, authority, network.host)
    url = f"https://{network.host}:{gateway['WMS_GATEWAY__PORT']}"
    pilots: Table = {**PILOTS, "sandboxes_url": url, "sandboxes_authorities": str(authority)}
    try:
        async with System(
            testbed.root / HIDDEN, services=(), kafka="loopback", durable=False, pilots=pilots
        ) as system:
            assert system.facts is not None
            for name in ("job_manager", "matcher", "gateway"):
                service = plan.service(name, system.facts)
                service.environment |= gateway if name == "gateway" else {}
                await system.supervisor.add(service)
            reached = {"WMS_GATEWAY__URL": url, "WMS_GATEWAY__AUTHORITIES": str(authority)}
            await _submit(system, testbed, place, reached)
            for site, kind in KINDS.items():
                await advertise(system.facts.postgres_url, site, kind, SLOTS)
            yield system
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _encrypted(place: Path, authority: Path, host: str) -> dict[str, str]:
    """Write the gateway's certificate, for nodes to trust, and return by what settings it is used."""
    maker = Authority()
    authority.write_bytes(maker.credential.pem)
    made = maker.host(host)
    file = place / "gateway.key"
    file.touch(mode=0o600)
    file.write_bytes(made.pem + made.key_pem)
    return {
        "WMS_GATEWAY__HOST": host,
        "WMS_GATEWAY__PORT": str(settle_port(place, 0)),
        "WMS_GATEWAY__CERTIFICATE": str(file),
    }


async def _submit(system: System, testbed: Sites, place: Path, environment: dict[str, str]) -> None:
    assert system.facts is not None
    plan.service("pilot_submitter", system.facts)
    own = (system.layout.service("pilot_submitter") / "config.toml").read_text()
    file = place / "pilot_submitter.toml"
    # Beside the loop, which watches over the servers meanwhile.
    elements = await asyncio.to_thread(_elements, testbed, place)
    file.write_text(own + "\n" + to_toml(elements))
    argv = [sys.executable, "-m", "services.pilot_submitter", "--config", str(file)]
    submitter = Program(place / "submitter", name="pilot_submitter", argv=argv)
    submitter.environment |= environment
    await system.supervisor.add(submitter)


def _elements(testbed: Sites, place: Path) -> dict[str, list[dict[str, Any]]]:
    agent = place / "wms-agent.pyz"
    build(ROOT, agent, ROOT / ".cache" / "agent_file", [VERSION])
    common = {
        "ce": "main",
        "agent_file": str(agent),
        "python": str(_python(testbed)),
        "lifetime_seconds": 900.0,
    }
    arc = testbed.told["arc"]
    return {
        "slurm": [
            {
                **common,
                "site": "alpha",
                # What a batch system shares with its nodes: the pilots' own files.
                "directory": str(testbed.root / "pilots"),
                "configuration": str(testbed.slurm("alpha")),
                "partition": "main",
                "follow_every_seconds": 1.0,
            }
        ],
        "arc": [
            {
                **common,
                "site": "arc",
                "url": arc["url"],
                "queue": "main",
                "proxy": arc["proxy"],
                "authorities": arc["authority"],
                "follow_every_seconds": 2.0,
            }
        ],
    }


def _python(testbed: Sites) -> Path:
    """Return a command that is a bare Python for every user of the nodes."""
    command = testbed.root / "python"
    # Everything before the agent's module: how Python itself is started.
    started = [each for each in software(testbed.root)[:-2] if not each.startswith("PYTHONPATH=")]
    command.write_text(f'#!/bin/sh\nexec {" ".join(started)} "$@"\n')
    command.chmod(0o755)
    return command
