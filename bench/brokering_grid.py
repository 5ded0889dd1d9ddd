"""A grid of real Slurm clusters and an ARC element with a hierarchy of index servers, for benchmarks of the broker.

Twelve resources of 4 to 388 slots, as in Elmroth and Tordsson's evaluation: ten Slurm clusters at two sites, and the two queues of an
ARC element over another cluster. Three index servers lead to the resources of a site each, one above leads to the three.
"""

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import msgspec
from aiohttp import web
from msgspec.structs import replace

from bench.validity import InvalidError
from deploy.testbed.testbed import SITES
from services.advertiser.config import SlurmQueues
from services.advertiser.slurm import Slurm
from wms.auth.keys import load_key
from wms.auth.principal import Right
from wms.auth.token import Claims, mint
from wms.dispatch.commands import Tools
from wms.embedded import layout as plan
from wms.embedded.server import Program
from wms.embedded.system import System
from wms.files import to_toml, write_secret
from wms.glue.glue2_xml import write_xml
from wms.glue.versions import service
from wms.ids import CeId
from wms.runtime import clock

ARC = "localhost"
"""The site of the ARC element: index servers name it by its host."""
ARC_CLUSTER, ARC_SLOTS, ARC_QUEUES = "arc", 64, ("main", "short")
CLUSTERS = {
    "north": {"n1": 4, "n2": 32, "n3": 100, "n4": 100, "n5": 100},
    "south": {"s1": 16, "s2": 100, "s3": 100, "s4": 100, "s5": 388},
}
"""The slots of each cluster, by site."""
PLACES = [CeId(site, ce) for site, those in CLUSTERS.items() for ce in those] + [
    CeId(ARC, ce) for ce in ARC_QUEUES
]
NODE = ["/bin/sh", "-c", "exec sleep 86400"]
"""What batch jobs do instead of a job agent's work: nodes of a grid do not work on the cores of its broker."""
MANY = 10_000
FRESH = 30
"""The seconds between two looks of ARC's information provider, and for which answers of index servers are used."""
VO = "testbed"
"""The VO for which the ARC element takes jobs."""
READY_WITHIN = 120.0
LOCAL = "127.0.0.1"


class BatchSystems(NamedTuple):
    """The batch systems of a testbed that runs."""

    root: Path
    told: dict[str, dict[str, Any]]

    def tools(self, cluster: str) -> Tools:
        """Return the tools of a cluster."""
        path = "/usr/local/bin:/usr/bin:/bin"
        return Tools({"PATH": path, "LC_ALL": "C", "SLURM_CONF": self.told[cluster]["configuration"]})

    async def jobs(self, cluster: str) -> set[str]:
        """Return the names of the jobs that a cluster lists as waiting or running."""
        said = await self.tools(cluster).ask("squeue", "-h", "-t", "PD,R,CF", "-o", "%j")
        return set(said.out.split())

    async def reservations(self, cluster: str) -> set[str]:
        """Return the names of the reservations that a cluster lists."""
        said = await self.tools(cluster).run("scontrol", "--oneliner", "show", "reservation")
        words = said.out.split()
        return {each.partition("=")[2] for each in words if each.startswith("ReservationName=")}

    async def all_reservations(self) -> set[str]:
        """Return the names of the reservations of all clusters."""
        return set().union(*[await self.reservations(each) for those in CLUSTERS.values() for each in those])


@contextmanager
def batch_systems() -> Iterator[BatchSystems]:
    """Have a process keep the batch systems up as long as we hold its standard input, which even our death ends."""
    root = Path(tempfile.mkdtemp(prefix="wms-grid-", dir="/tmp"))
    # The users that ARC's jobs run as must come there.
    root.chmod(0o755)
    sizes = {ARC_CLUSTER: ARC_SLOTS, **CLUSTERS["north"], **CLUSTERS["south"]}
    options = [f"--cluster={name}=1x{slots}" for name, slots in sizes.items()]
    keeper = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "deploy.testbed",
            "run",
            str(root),
            f"--information-seconds={FRESH}",
            *options,
        ],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        if not keeper.stdout.readline().startswith(b"up "):
            raise InvalidError("the batch systems do not start")
        yield BatchSystems(root, msgspec.json.decode((root / SITES).read_bytes()))
    finally:
        keeper.stdin.close()
        keeper.wait(120)
        keeper.stdout.close()
        shutil.rmtree(root, ignore_errors=True)


# --- index servers --------------------------------------------------------------------------------


class IndexServer:
    """An index server on a port of its own: it lists other servers, or describes what is asked of its batch systems then."""

    def __init__(self) -> None:
        self.leads: list[tuple[str, str]] = []
        """Addresses, and the types of what is there."""
        self.clusters: dict[str, Slurm] = {}
        """The providers of clusters by their names; each has an address below this server's."""
        self.asked = 0
        self.url = ""

    async def list(self, _: web.Request) -> web.Response:
        """Answer with the list of addresses, as ARCHERY has it."""
        self.asked += 1
        own = [(f"{self.url}/{name}", "archery.group") for name in self.clusters]
        lines = [f"u={url} t={kind}" for url, kind in (*self.leads, *own)]
        return web.Response(text="\n".join(["o=group", *lines]))

    async def describe(self, request: web.Request) -> web.Response:
        """Answer with what a cluster's tools tell now, as GLUE 2.0."""
        self.asked += 1
        (seen,) = await self.clusters[request.match_info["name"]].read()
        ce = seen.offer.ce
        told = replace(seen.glue, name=ce, contact=f"slurm://{seen.offer.site}/{ce}")
        return web.Response(body=write_xml([service([told], name=ce)]), content_type="application/xml")


@asynccontextmanager
async def index_servers(batch: BatchSystems) -> AsyncIterator[list[IndexServer]]:
    """Run the four index servers; the first is above the others."""
    servers = [IndexServer() for _ in range(4)]
    runners = [await _run(each) for each in servers]
    top, arc, *others = servers
    arc.leads = [(batch.told["arc"]["url"], "org.nordugrid.arcrest")]
    for each, (site, clusters) in zip(others, CLUSTERS.items(), strict=True):
        each.clusters = {ce: Slurm(_queues(batch, site, ce)) for ce in clusters}
    top.leads = [(each.url, "archery.group") for each in (arc, *others)]
    try:
        yield servers
    finally:
        for runner in runners:
            await runner.cleanup()


async def _run(server: IndexServer) -> web.AppRunner:
    application = web.Application()
    application.router.add_get("/", server.list)
    application.router.add_get("/{name}", server.describe)
    runner = web.AppRunner(application, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, LOCAL, 0).start()
    server.url = f"http://{LOCAL}:{runner.addresses[0][1]}"
    return runner


def _queues(batch: BatchSystems, site: str, ce: str) -> SlurmQueues:
    return SlurmQueues(
        site=site, configuration=batch.told[ce]["configuration"], queues=["main"], names={"main": ce}
    )


def join(running: System) -> None:
    """Make the system's user a member of the VO that the elements are for."""
    user = Claims(
        kind="user", owner="bench", group="user", vo=VO, rights=frozenset({Right.JOB_ADMINISTRATOR})
    )
    token = mint(load_key(running.layout.keys / "issuer.pem"), user, READY_WITHIN * 120, clock.timestamp())
    write_secret(running.layout.user_token, token + "\n")


# --- services -------------------------------------------------------------------------------------


async def start_services(running: System, batch: BatchSystems, *, reserving: bool) -> None:
    """Start what is beside job manager and matcher, and wait until all elements are advertised, and reserve if they are to."""
    assert running.facts is not None
    own = [
        ("advertiser", "advertiser", _advertiser(batch)),
        ("pilot_submitter", "pilot_submitter", _submitter(batch, running.layout.root)),
        ("resource_broker", "resource_broker", {"indexes": _discovery(batch)}),
    ]
    if reserving:
        own += [(f"agreement-{site}", "agreement", _agreement(batch, site)) for site in (*CLUSTERS, ARC)]
    for name, program, told in own:
        await running.supervisor.add(_program(running.facts, name, program, told))
    await _until_there(running.facts.postgres_url, reserving=reserving)


def _program(facts: plan.ConfigValues, name: str, program: str, told: dict[str, Any]) -> Program:
    plan.service(program, facts)
    usual = tomllib.loads((facts.layout.service(program) / "config.toml").read_text())
    usual.pop("elements", None)
    for section, table in told.items():
        usual[section] = {**usual.get(section, {}), **table} if isinstance(table, dict) else table
    place = facts.layout.service(name)
    write_secret(place / "own.toml", to_toml(usual))
    argv = [sys.executable, "-m", f"services.{program}", "--config", str(place / "own.toml")]
    return Program(place, name=name, argv=argv)


def _advertiser(batch: BatchSystems) -> dict[str, Any]:
    stated = {
        "slots_per_pilot": 1,
        "memory_mb": 100,
        "max_waiting_pilots": MANY,
        "max_pilots": MANY,
        "look_seconds": FRESH,
    }
    slurm = [
        {**msgspec.to_builtins(_queues(batch, site, ce)), **stated, "benchmarks": {"SI00": speed(ce)}}
        for site, clusters in CLUSTERS.items()
        for ce in clusters
    ]
    arc = batch.told["arc"]
    queues = {
        "site": ARC,
        "url": arc["url"],
        "proxy_file": arc["proxy"],
        "authorities": arc["authority"],
        "benchmarks": {"SI00": 900},
    }
    return {"slurm": slurm, "arc": [{**queues, **stated}]}


def speed(ce: str) -> int:
    """Return the benchmark result of a cluster's nodes: no two are alike, and the largest is not the fastest."""
    names = [each for clusters in CLUSTERS.values() for each in clusters]
    return 1_000 + 50 * (7 * names.index(ce) % 11)


def _submitter(batch: BatchSystems, root: Path) -> dict[str, Any]:
    slurm = [
        {
            "site": site,
            "ce": ce,
            "directory": str(root / "shared" / ce),
            "configuration": batch.told[ce]["configuration"],
            "partition": "main",
            "agent": NODE,
        }
        for site, clusters in CLUSTERS.items()
        for ce in clusters
    ]
    arc = batch.told["arc"]
    queues = [
        {
            "site": ARC,
            "ce": queue,
            "url": arc["url"],
            "queue": queue,
            "proxy": arc["proxy"],
            "authorities": arc["authority"],
            "agent": NODE,
        }
        for queue in ARC_QUEUES
    ]
    # Pilots that are silent, as these are, are left alone meanwhile.
    pilots = {"most": MANY, "given_up_seconds": 86_400.0}
    return {"slurm": slurm, "arc": queues, "pilots": pilots}


def _discovery(batch: BatchSystems) -> dict[str, Any]:
    arc = batch.told["arc"]
    return {
        "hosts": [LOCAL, ARC],
        "fresh_seconds": FRESH,
        "proxy_file": arc["proxy"],
        "authorities": arc["authority"],
    }


def _agreement(batch: BatchSystems, site: str) -> dict[str, Any]:
    """Return the elements of a site's agreement service: real reservations on Slurm, a calendar of slots for ARC's queues."""
    elements: list[dict[str, Any]] = [
        {
            "ce": ce,
            "kind": "slurm",
            "slurm": {"configuration": batch.told[ce]["configuration"], "partition": "main"},
        }
        for ce in CLUSTERS.get(site, ())
    ]
    if site == ARC:
        elements = [{"ce": ce, "kind": "calendar"} for ce in ARC_QUEUES]
    # One user has all jobs of the benchmark.
    return {"agreement": {"site": site}, "elements": elements, "quotas": {"*": {"owner_agreements": 1_000}}}


async def _until_there(url: str, *, reserving: bool) -> None:
    connection = await asyncpg.connect(url)
    queries = ["select site, ce from ad where expires_at > now()"]
    queries += ["select site, ce from agreement_element where told_until > now()"] if reserving else []
    try:
        for query in queries:
            await _until_all(connection, query)
    finally:
        await connection.close()


async def _until_all(connection: asyncpg.Connection, query: str) -> None:
    deadline = time.monotonic() + READY_WITHIN
    while missing := set(PLACES) - {CeId(*each) for each in await connection.fetch(query)}:
        if time.monotonic() > deadline:
            raise InvalidError(f"not there: {missing}")
        await asyncio.sleep(0.2)
