"""Limits on jobs hold for the jobs that are really there, whatever tells of them: this machine, batch systems, ARC, files and indexes."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from services.advertiser import arc
from services.advertiser.config import (
    ArcQueues,
    BatchSettings,
    FileSettings,
    IndexSettings,
    LocalElement,
    LsfQueues,
    PbsQueues,
    SiteStatement,
    SlurmQueues,
)
from services.advertiser.file import FileProvider
from services.advertiser.indexes import Indexes
from services.advertiser.local import Local
from services.advertiser.lsf import Lsf
from services.advertiser.pbs import Pbs
from services.advertiser.processes import environments
from services.advertiser.provider import Provider, SeenElement
from services.advertiser.queues import wanted
from services.advertiser.slurm import Slurm
from services.advertiser.statement import state
from services.matcher import ads
from services.pilot_submitter.ce_endpoints import CeEndpoints
from services.pilot_submitter.config import Config, PilotFactorySettings, PilotSandboxSettings
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.provisioning import Provisioning
from tests.services.advertiser import fake_batch_tools
from tests.services.world import World, pilot, user
from tests.waiting import eventually
from wms.audit.auditor import audit
from wms.auth.keys import generate_keys, load_key
from wms.auth.orders import OrderKeys
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.bus.kafka import KafkaSettings
from wms.cli.sites_queues_pilots import jobs_there_rows, site_rows
from wms.dispatch.local import LocalDispatcher
from wms.glue.quantity import known
from wms.messages import replies
from wms.messages.ads import Advertise
from wms.messages.queries import ListSites
from wms.provisioning.plan import PilotCaps
from wms.runtime.config import AuthSettings
from wms.runtime.machine import Machine

pytestmark = pytest.mark.asyncio(loop_scope="session")

DATA = Path(__file__).parents[1] / "data"
MACHINE = Machine(cores=8, memory_mb=16_000, load=1.5, platforms=("Linux-x86_64",))
STAYS = ["/bin/sh", "-c", "exec sleep 600"]
LIMITS: dict[str, Any] = {"max_jobs": 100, "max_submitting_jobs": 50}


def speaker() -> Principal:
    return Principal(
        kind="site",
        owner="advertiser",
        group="site",
        vo="",
        rights=frozenset({"advertise"}),
        sites=frozenset({"*"}),
        token_id="t",
        expires_at=4e9,
    )


async def advertise(
    world: World,
    seen: SeenElement,
    settings: SiteStatement,
    at: datetime,
    *,
    counted_at: datetime | None = None,
) -> replies.SiteLine:
    """Bring an element's ad through the matcher; return the element as it is listed then."""
    said = state(seen, settings)
    message = Advertise(
        element=said.element,
        advertised_at=at,
        observed_at=said.observed_at or counted_at or at,
        attributes=said.attributes,
        expressions=said.expressions,
        requirements=said.requirements,
        rank=said.rank,
    )
    async with world.db.transaction() as tx:
        await ads.handle(tx, [Delivery(speaker(), message)])
    reply = await world.ask(user(), ListSites(query_id="q"))
    assert isinstance(reply, replies.Sites)
    return next(each for each in reply.sites if (each.site, each.ce) == said.place)


# --- what the sources count -----------------------------------------------------------------------


def fake_slurm(place: Path) -> str:
    """Stand for Slurm's tools by what a real Slurm printed once."""
    printed = {"sinfo": "sinfo-22.05.json", "squeue": "squeue-22.05.json", "scontrol": "partitions.txt"}
    for name, file in printed.items():
        (place / name).write_text(f"#!/bin/sh\ncat {DATA / 'slurm' / file}\n")
        (place / name).chmod(0o755)
    return str(place)


class FakeArc:
    """Stands for an ARC element that answers with what a real one told once."""

    def __init__(self, settings: ArcQueues, document: bytes) -> None:
        self._settings = settings
        self._document = document

    async def read(self) -> list[SeenElement]:
        return wanted(self._settings, arc._queues(self._document, "application/xml"), dispatcher="arc")


def busy_arc() -> bytes:
    """Return what an ARC element tells of three running and two waiting jobs."""
    text = (DATA / "glue" / "arc.xml").read_text()
    for name, number in (("RunningJobs", 3), ("WaitingJobs", 2)):
        text = text.replace(f"<{name}>0</{name}>", f"<{name}>{number}</{name}>")
    return text.encode()


def source(kind: str, place: Path) -> tuple[Provider, SiteStatement]:
    of: dict[str, Any] = {"site": "A", "names": {"main": "ce", "long": "ce"}, **LIMITS}
    match kind:
        case "local":
            local = LocalElement(site="A", ce="ce", slots=16, **LIMITS)
            bears = [{"WMS_PILOT": "p-1", "WMS_JOB_ID": "1"}, {"WMS_PILOT": "p-2"}]
            return Local([local], look=lambda: MACHINE, processes=lambda: bears), local
        case "slurm":
            slurm = SlurmQueues(**of, directory=fake_slurm(place), queues=["main"])
            return Slurm(slurm), slurm
        case "pbs" | "lsf":
            fake_batch_tools.install(place / "tools", DATA)
            of |= {"directory": str(place / "tools"), "names": {"long": "ce", "normal": "ce"}}
            if kind == "pbs":
                pbs = PbsQueues(**of, queues=["long"])
                return Pbs(pbs), pbs
            lsf = LsfQueues(**of, queues=["normal"])
            return Lsf(lsf), lsf
        case "arc":
            settings = ArcQueues(**of, url="https://ce.example.org/arex", token_file="t", queues=["main"])
            return FakeArc(settings, busy_arc()), settings
        case "file":
            path = place / "site.ldif"
            path.write_bytes((DATA / "glue" / "bdii.ldif").read_bytes())
            file = FileSettings(**of, path=str(path), dispatcher="arc")
            return FileProvider(file), file
        case _:
            path = place / "index.ldif"
            path.write_bytes((DATA / "glue" / "bdii.ldif").read_bytes())
            index = IndexSettings(**of, urls=[path.as_uri()])
            return Indexes(index, KafkaSettings(), speaker), index


@pytest.mark.parametrize("kind", ["local", "slurm", "pbs", "lsf", "arc", "file", "index"])
async def test_the_source_counts_the_jobs_and_the_limits_are_of_these(
    the_world: World, tmp_path: Path, kind: str
) -> None:
    provider, settings = source(kind, tmp_path)
    (seen,) = await provider.read()
    glue = seen.glue
    there = {
        "local": (2, 1), "slurm": (26, 24), "pbs": (8, 5), "lsf": (32, 12), "arc": (9, 2), "file": (90, 0), "index": (90, 0)
    }[kind]  # fmt: skip
    assert (seen.offer.current_jobs, seen.offer.current_submitting_jobs) == there
    assert sum(known(each) or 0 for each in (glue.running_jobs, glue.waiting_jobs)) == there[0]
    now = datetime.now(UTC)
    line = await advertise(the_world, seen, settings, now, counted_at=now)
    said = state(seen, settings).attributes
    assert (said["CurrentJobs"], said["CurrentSubmittingJobs"]) == there
    assert said["GlueCEStateRunningJobs"] <= there[0], "the source's own word stands beside it"
    left = min(100 - there[0], 50 - there[1])
    assert line.jobs_there == replies.JobsThere(
        source=there[0],
        source_submitting=there[1],
        pilots=0,
        jobs=0,
        unseen=0,
        idle=0,
        pilots_left=left,
        jobs_left=left,
    )
    ((*row,),) = jobs_there_rows((line,))
    assert row == ["ce", *there, 0, 0, 0, 0, 100, 50, left, left]
    assert f"{there[0]} of 100" in site_rows((line,))[0]


def test_the_kinds_are_all_there_are() -> None:
    assert {each.__name__ for each in BatchSettings.__subclasses__()} == {
        "SlurmQueues",
        "PbsQueues",
        "LsfQueues",
        "ArcQueues",
        "FileSettings",
        "IndexSettings",
    }


# --- that limits hold -----------------------------------------------------------------------------


class Site:
    """This machine as an element with at most three jobs, by its real processes, and a pilot submitter."""

    def __init__(self, world: World, place: Path) -> None:
        self.world = world
        self.settings = LocalElement(site="A", ce="ce", slots=16, slots_per_pilot=1, max_jobs=3)
        self.local = Local([self.settings], look=lambda: MACHINE, processes=self.processes)
        self.dispatcher = LocalDispatcher(place / "pilots", STAYS, {"PATH": os.environ["PATH"]})
        self.endpoints = CeEndpoints(self.dispatcher, lambda: 0.0, local_sites=["A"])
        self.following = PilotTracking(world.db, self.endpoints)
        self.place = place
        generate_keys(place / "keys")

    def processes(self) -> list[Mapping[str, str]]:
        """Return those of this machine that are ours: other tests may run beside this one."""
        ours = {each.name for each in (self.place / "pilots").glob("p-*")}
        return [each for each in environments() if each.get("WMS_PILOT") in ours]

    async def advertise(self) -> replies.SiteLine:
        now = datetime.now(UTC)
        (seen,) = await self.local.read()
        return await advertise(self.world, seen, self.settings, now)

    async def provide(self) -> list[Any]:
        pilots = PilotFactorySettings(directory=str(self.place / "pilots"), keys=str(self.place / "keys"))
        config = Config(
            auth=AuthSettings(jwks=""), pilots=pilots, sandboxes=PilotSandboxSettings(url="file:///x")
        )
        key = load_key(self.place / "keys" / "pilots.pem")
        maker = PilotFactory(config, key, OrderKeys([b"k" * 32]))
        await Provisioning(self.world.db, self.endpoints, maker, PilotCaps(), self.following).provide()
        await self.following.follow()
        return await self.dispatcher.alive()


async def test_however_many_ads_come_no_more_jobs_are_there_than_the_site_lets(
    the_world: World, tmp_path: Path
) -> None:
    site = Site(the_world, tmp_path)
    await the_world.submit({"array": 30})
    try:
        for _ in range(3):
            await site.advertise()
            assert len(await site.provide()) == 3
            assert len(await site.provide()) == 3, "nor between ads"
        line = await site.advertise()
        assert line.jobs_there is not None
        assert (line.jobs_there.source, line.jobs_there.pilots, line.jobs_there.idle) == (3, 3, 3)
        assert (line.jobs_there.pilots_left, line.jobs_there.jobs_left) == (0, 3), "each may have a job"
        assert (await audit(the_world.url)).ok
        await the_world.sql("update pilot set seen_at = now()")
        gone = (await site.dispatcher.alive())[0]
        await site.dispatcher.cancel([gone])

        async def ended() -> bool:
            await site.following.follow()
            return gone not in await site.dispatcher.alive() and await pilots_alive(the_world) == 2

        await eventually(ended)
        assert len(await site.provide()) == 2, "the ad does not know yet"
        await site.advertise()
        assert len(await site.provide()) == 3
    finally:
        await site.dispatcher.cancel(await site.dispatcher.alive())


async def pilots_alive(world: World) -> int:
    return len(await world.sql("select from pilot where ended_at is null"))


async def pilots(world: World, *states: str, at: datetime | None = None) -> None:
    """Write pilots down that are at the element in these states, the jobs of which nobody has given yet."""
    for number, each in enumerate(states):
        await world.sql(
            "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots, state, submitted_at)"
            " values ($1, 'A', 'ce', 'lhcb', 'arc', 8, $2, $3)",
            *(f"p-{number}", each, at or datetime.now(UTC) - timedelta(hours=1)),
        )


async def of_arc(
    world: World, running: int, waiting: int, counted_at: datetime, **limits: int
) -> replies.JobsThere:
    """Have an ARC element advertise so many jobs, counted then."""
    settings = FileSettings(site="A", path="x.xml", dispatcher="arc", names={"main": "ce"}, **limits)  # type: ignore[arg-type] # as said
    queues = arc._queues((DATA / "glue" / "arc.xml").read_bytes(), "application/xml")
    (queue,) = (each for each in queues if each.name == "main")
    queue = replace(queue, running_jobs=running, waiting_jobs=waiting, total_jobs=running + waiting)
    (seen,) = wanted(settings, [queue], dispatcher="arc")
    line = await advertise(world, seen, settings, datetime.now(UTC), counted_at=counted_at)
    assert line.jobs_there is not None
    return line.jobs_there


def left(there: replies.JobsThere) -> Sequence[int | None]:
    return there.pilots_left, there.jobs_left


async def test_what_runs_there_is_counted_with_the_limits_beside_it(the_world: World) -> None:
    now = datetime.now(UTC)
    assert left(await of_arc(the_world, 88, 0, now, max_jobs=90, max_submitting_jobs=5)) == (2, 2)
    assert left(await of_arc(the_world, 50, 4, now, max_jobs=90, max_submitting_jobs=5)) == (1, 1)
    assert left(await of_arc(the_world, 60, 40, now, max_jobs=90)) == (0, 0)


@pytest.mark.parametrize("how", ["on its way", "sent after the count"])
async def test_what_was_sent_and_the_source_cannot_have_seen_is_counted_beside_it(
    the_world: World, how: str
) -> None:
    now = datetime.now(UTC)
    state_, sent = ("Submitting", now - timedelta(hours=1)) if how == "on its way" else ("Waiting", now)
    await pilots(the_world, *[state_] * 4, at=sent)
    there = await of_arc(the_world, 80, 0, now - timedelta(minutes=1), max_jobs=90)
    assert (there.pilots, there.unseen, *left(there)) == (4, 4, 6, 10)


async def test_what_the_source_has_seen_is_not_counted_twice_and_may_have_a_job_each(
    the_world: World,
) -> None:
    await pilots(the_world, *["Running"] * 4)
    there = await of_arc(the_world, 84, 0, datetime.now(UTC), max_jobs=90)
    assert (there.unseen, there.idle, *left(there)) == (0, 4, 6, 10)
    full = await of_arc(the_world, 90, 0, datetime.now(UTC), max_jobs=90)
    assert left(full) == (0, 4)


async def test_a_pilot_with_several_jobs_is_several_jobs(the_world: World) -> None:
    await the_world.submitted(9)
    await pilots(the_world, "Running", "Running")
    assert len(await the_world.match(pilot("p-0"), slots=5)) == 5
    there = await of_arc(the_world, 2, 0, datetime.now(UTC), max_jobs=8)
    assert (there.source, there.idle, *left(there)) == (2, 1, 2, 3), "2 pilots, and 4 jobs beyond one a pilot"


async def test_a_source_that_does_not_see_our_pilots_has_them_counted_by_us(the_world: World) -> None:
    await pilots(the_world, *["Running"] * 6)
    assert left(await of_arc(the_world, 0, 0, datetime.now(UTC), max_jobs=8)) == (2, 8)
