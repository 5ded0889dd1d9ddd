"""Jobs through pilots on two Slurm clusters, an ARC element and this machine at once: all end Done."""

import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest
import pytest_asyncio

from tests.middleware import ROOT, Sites
from tests.waiting import eventually
from wms.audit import audit
from wms.client import Client, JobDescription, select
from wms.embedded import layout as plan
from wms.embedded.server import Program
from wms.embedded.system import System
from wms.site import ComputingElement

pytestmark = [pytest.mark.testbed, pytest.mark.timeout(300)]

JOBS_AT_EACH = 6
KINDS = {"here": "local", "alpha": "slurm", "beta": "slurm", "arc": "arc"}
"""Site by site, what leads there."""


def software(root: Path) -> list[str]:
    """Lay out what pilots need where every user of this machine may read it; return how an agent is started from there."""
    place = root / "software"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
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
    packages = place / "packages" / Path(asyncpg.__file__).parents[1].name
    return [
        "env",
        f"PYTHONPATH={place / 'project'}:{packages}",
        f"LD_LIBRARY_PATH={place / 'python/lib'}",
        "PYTHONDONTWRITEBYTECODE=1",
        str(place / "python/bin" / version),
        *("-m", "services.job_agent"),
    ]


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
            *(f"{key} = {msgspec.json.encode(value).decode()}" for key, value in table.items()),
        ]
    return "\n".join(lines) + "\n"


@pytest_asyncio.fixture(loop_scope="session")
async def system(testbed: Sites) -> AsyncIterator[System]:
    # Where users that are not root may come, as ARC's jobs must.
    root = testbed.root / "system"
    root.mkdir()
    pilots = {"idle_seconds": 3.0}
    try:
        async with System(
            root / "own", services=("job_manager", "matcher"), durable=False, pilots=pilots
        ) as running:
            await _submitter(running, testbed, root)
            yield running
    finally:
        shutil.rmtree(root, ignore_errors=True)


async def _submitter(system: System, testbed: Sites, place: Path) -> None:
    assert system.facts is not None
    plan.service("pilot_submitter", system.facts)
    file = place / "pilot_submitter.toml"
    file.write_text(configuration(system, testbed, place))
    argv = [sys.executable, "-m", "services.pilot_submitter", "--config", str(file)]
    await system.supervisor.add(Program(place / "submitter", name="pilot_submitter", argv=argv))


async def advertise(url: str, site: str, kind: str) -> None:
    element = ComputingElement(
        site=site,
        ce="main",
        setup="default",
        dispatcher=kind,
        slots=4,
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


async def rows(url: str, query: str) -> list[asyncpg.Record]:
    connection = await asyncpg.connect(url)
    try:
        return list(await connection.fetch(query))
    finally:
        await connection.close()


async def test_jobs_end_done_through_pilots_of_every_kind_at_once(system: System) -> None:
    assert system.facts is not None
    url = system.facts.postgres_url
    for site, kind in KINDS.items():
        await advertise(url, site, kind)
    async with Client.connect(system.layout.root, timeout=60) as client:
        submitted = await client.submit(
            [
                JobDescription(
                    executable="/bin/sh",
                    arguments=("-c", "echo $WMS_SITE; sleep 0.2"),
                    sites=(site,),
                    cpu_time=60,
                    array=JOBS_AT_EACH,
                )
                for site in KINDS
            ]
        )
        counts = await client.wait(submitted.selector(), timeout=180)
        assert counts == {"Done": JOBS_AT_EACH * len(KINDS)}
        assert {job.site async for job in client.jobs(select(everything=True))} == set(KINDS)

    ran = {
        row["site"]: row
        for row in await rows(
            url,
            "select site, dispatcher, count(*) filter (where jobs_done > 0) as worked, sum(jobs_done) as jobs from pilot group by 1, 2",
        )
    }
    assert {site: (row["dispatcher"], row["jobs"]) for site, row in ran.items()} == {
        site: (kind, JOBS_AT_EACH) for site, kind in KINDS.items()
    }
    assert (await audit(url)).ok

    async def all_ended_well_and_left_their_words() -> bool:
        found = await rows(url, "select state, reason, output from pilot")
        assert all(
            row["state"] in ("Running", "Draining", "Submitted", "Waiting", "Done") for row in found
        ), found
        return all(row["state"] == "Done" and "pilot" in (row["output"] or "") for row in found)

    await eventually(all_ended_well_and_left_their_words, within=90)
