"""A system whose pilots go to two Slurm clusters, an ARC element and this machine: real ones all of them."""

import contextlib
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import asyncpg
import msgspec

from tests.middleware import ROOT, Sites
from wms.embedded import layout as plan
from wms.embedded.server import Program
from wms.embedded.system import System
from wms.files import to_toml
from wms.site import ComputingElement

KINDS = {"here": "local", "alpha": "slurm", "beta": "slurm", "arc": "arc"}
"""Site by site, what leads there."""


MAPPING = {"GlueHostApplicationSoftwareRunTimeEnvironment": "--constraint={value}"}
"""The sites' own rule: their software environments are features of Slurm's nodes."""


def software(root: Path) -> list[str]:
    """Lay out, once, what pilots need where every user of this machine may read it; return how an agent is started from there."""
    place = root / "software"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not place.exists():
        unfinished = root / "software.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        _lay_out(unfinished, version)
        unfinished.rename(place)
    packages = place / "packages" / Path(asyncpg.__file__).parents[1].name
    return [
        "env",
        f"PYTHONPATH={place / 'project'}:{packages}",
        f"LD_LIBRARY_PATH={place / 'python/lib'}",
        "PYTHONDONTWRITEBYTECODE=1",
        str(place / "python/bin" / version),
        *("-m", "services.job_agent"),
    ]


def _lay_out(place: Path, version: str) -> None:
    parts = {
        Path(sys.base_prefix, "bin", version): place / "python/bin",
        Path(sys.base_prefix, "lib", version): place / "python/lib",
        Path(asyncpg.__file__).parents[1]: place / "packages",
        ROOT / "wms": place / "project",
        ROOT / "services": place / "project",
        **dict.fromkeys(Path(sys.base_prefix, "lib").glob("libpython*"), place / "python/lib"),
    }
    for source, into in parts.items():
        into.mkdir(parents=True, exist_ok=True)
        # By links, where the file system has them: it is a gigabyte.
        linked = subprocess.run(["cp", "-al", source.resolve(), into], capture_output=True, check=False)
        if linked.returncode:
            subprocess.run(["cp", "-a", source.resolve(), into], check=True)


def configuration(system: System, testbed: Sites, place: Path) -> str:
    """Return what the pilot submitter is told of the elements, beside what it is told of the system."""
    assert system.facts is not None
    own = place / "arc-sandboxes"
    own.mkdir(mode=0o755)
    shutil.chown(own, "nobody", "nogroup")
    arc = testbed.told["arc"]
    tables: list[tuple[str, dict[str, Any]]] = [
        *(
            (
                "slurm",
                {
                    "site": name,
                    "ce": "main",
                    "directory": str(place / name),
                    "configuration": str(testbed.slurm(name)),
                    "partition": "main",
                    "follow_every_seconds": 1.0,
                    "lifetime_seconds": 900.0,
                    "mapping": MAPPING,
                },
            )
            for name in ("alpha", "beta")
        ),
        (
            "arc",
            {
                "site": "arc",
                "ce": "main",
                "agent": software(testbed.root),
                "sandboxes_url": own.as_uri(),
                "url": arc["url"],
                "queue": "main",
                "proxy": arc["proxy"],
                "authorities": arc["authority"],
                "follow_every_seconds": 2.0,
                "lifetime_seconds": 900.0,
            },
        ),
    ]
    lines = [(system.layout.service("pilot_submitter") / "config.toml").read_text()]
    for kind, table in tables:
        lines += [
            f"\n[[{kind}]]",
            *(f"{key} = {_toml(value)}" for key, value in table.items()),
        ]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    return msgspec.json.encode(value).decode()


PILOTS = {
    "idle_seconds": 3.0,
    "silent_seconds": 10.0,
    "given_up_seconds": 60.0,
    "lingering_seconds": 30.0,
    "most": 32,
}
SERVICES = ("job_manager", "matcher", "gateway")


@contextlib.asynccontextmanager
async def system_everywhere(
    testbed: Sites,
    *,
    environment: Mapping[str, str] = {},
    slots: int = 4,
    policies: Mapping[str, Mapping[str, Any]] = {},
) -> AsyncIterator[System]:
    """Bring a system up whose job manager and matcher get `environment` besides, and advertise `slots` at each site.

    A Slurm site that has a policy - settings of its own - is advertised by an advertiser of its own, the others by this test.
    """
    # Where users that are not root may come, as ARC's jobs must.
    root = testbed.root / "system"
    root.mkdir()
    try:
        async with System(
            root / "own",
            services=(),
            kafka="loopback",
            durable=False,
            pilots={**PILOTS, "local_sites": ["here"]},
        ) as system:
            assert system.facts is not None
            for name in SERVICES:
                service = plan.service(name, system.facts)
                service.environment |= environment if name != "gateway" else {}
                await system.supervisor.add(service)
            await _submitter(system, testbed, root)
            for site, policy in policies.items():
                await _station(system, testbed, root, site, {**_offered(slots), **policy})
            for site, kind in KINDS.items() - {(site, KINDS[site]) for site in policies}:
                await advertise(system.facts.postgres_url, site, kind, slots)
            yield system
    finally:
        shutil.rmtree(root, ignore_errors=True)


async def _submitter(system: System, testbed: Sites, place: Path) -> None:
    assert system.facts is not None
    plan.service("pilot_submitter", system.facts)
    file = place / "pilot_submitter.toml"
    file.write_text(configuration(system, testbed, place))
    argv = [sys.executable, "-m", "services.pilot_submitter", "--config", str(file)]
    await system.supervisor.add(Program(place / "submitter", name="pilot_submitter", argv=argv))


def _offered(slots: int) -> dict[str, Any]:
    return {"queues": ["main"], "slots": slots, "slots_per_pilot": 2, "memory_mb": 400, "max_cpu_time": 10**6}


async def _station(system: System, testbed: Sites, place: Path, site: str, policy: Mapping[str, Any]) -> None:
    """Run a site's own advertiser, with a file of its own."""
    facts = system.facts
    assert facts is not None
    told: dict[str, Any] = {
        "kafka": facts.kafka,
        "advertising": {"token_file": str(facts.layout.site_token)},
        "slurm": [{"site": site, "configuration": str(testbed.slurm(site)), **policy}],
    }
    file = place / f"{site}.toml"
    file.write_text(to_toml(told))
    argv = [sys.executable, "-m", "services.advertiser", "--config", str(file)]
    await system.supervisor.add(Program(place / f"station-{site}", name=f"station-{site}", argv=argv))


async def advertise(url: str, site: str, kind: str, slots: int) -> None:
    element = ComputingElement(
        site=site,
        ce="main",
        setup="default",
        dispatcher=kind,
        slots=slots,
        slots_per_pilot=2,
        cores_per_pilot=2,
        memory_mb=400,
        max_cpu_time=10**6,
    )
    connection = await asyncpg.connect(url)
    await connection.execute(
        "insert into ad (site, ce, element, advertised_at, expires_at)"
        " values ($1, $2, $3::text::jsonb, now(), now() + interval '1 h')",
        *(site, "main", msgspec.json.encode(element).decode()),
    )
    await connection.close()


async def rows(url: str, query: str, *given: object) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url)
    try:
        return list(await connection.fetch(query, *given))
    finally:
        await connection.close()
