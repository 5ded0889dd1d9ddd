"""Where the suite of dispatchers is held: each middleware with what the suite needs to know of it.

The job agent's place is taken by a shell that runs what the pilot's configuration says.
"""

import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from tests.contract.dispatch import fake_batch, fake_condor
from tests.middleware import Sites
from tests.waiting import eventually
from wms.dispatch.arc import ArcDispatcher
from wms.dispatch.arc_rest import ArcEndpoint
from wms.dispatch.htcondor import CondorPool, HTCondorDispatcher
from wms.dispatch.job_policy import JobPolicy
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.lsf import LsfCluster, LsfDispatcher
from wms.dispatch.pbs import PbsDispatcher, PbsServer
from wms.dispatch.port import Dispatcher, PilotRequest, PilotSighting, Request
from wms.dispatch.slurm import Cluster, SlurmDispatcher
from wms.ids import PilotId

SHELL = ["/bin/sh", "-c", '. "$2"', "agent"]
ENVIRONMENT = {"PATH": os.environ["PATH"] + ":/usr/bin:/bin"}

WAITS = "trap 'echo drained; exit 0' TERM\necho began\nwhile :; do sleep 0.1; done\n"
ENDS = "echo all is well\n"
FAILS = "echo first\necho no broker answers >&2\nexit 3\n"
TALKS = "yes some words of a pilot | head -c 200000\necho the end\n"
TELLS_TOKEN = (
    'stat -c %a "$WMS_PILOT__TOKEN_FILE"\ncat "$WMS_PILOT__TOKEN_FILE"\nrm "$WMS_PILOT__TOKEN_FILE"\n' + WAITS
)
TELLS_POLICY = "env | grep ^WMS_POLICY_ | sort\n"
TELLS_PLACE = 'echo "$WMS_PILOT in $WMS_PILOT__DIRECTORY"\n'


class Ground(Protocol):
    """One middleware, as the suite sees it."""

    patience: float
    """Seconds within which a pilot is seen to start, or to have ended."""

    def dispatcher(self) -> Dispatcher:
        """Return a dispatcher that knows nothing from before."""

    def unreachable(self) -> Dispatcher | None:
        """Return one whose middleware is not there, unless that cannot be."""

    async def clear(self) -> None:
        """End all pilots."""


def order(
    program: str = WAITS, name: str = "", request: Request | None = None, policy: JobPolicy | None = None
) -> PilotRequest:
    """Return the order of a pilot of a name that no other has: clusters remember."""
    name = name or f"p-{uuid.uuid4().hex[:12]}"
    return PilotRequest(
        pilot_id=PilotId(name),
        site="S",
        ce="c",
        slots=1,
        config=program,
        token=f"t0ken-of-{name}",
        request=request or Request(),
        policy=policy or JobPolicy(),
    )


async def look(dispatcher: Dispatcher, name: str) -> PilotSighting:
    (sighting,) = await dispatcher.follow([PilotId(name)])
    return sighting


async def seen(ground: Ground, dispatcher: Dispatcher, name: str, *states: str) -> PilotSighting:
    """Wait until a pilot is in one of the states; return how it is then."""

    async def there() -> PilotSighting | None:
        sighting = await look(dispatcher, name)
        return sighting if sighting.state in states else None

    found = await eventually(there, within=ground.patience)
    assert found is not None
    return found


async def over(ground: Ground, dispatcher: Dispatcher, name: str) -> PilotSighting:
    return await seen(ground, dispatcher, name, "Done", "Failed", "Aborted")


class LocalGround:
    patience = 30.0

    def __init__(self, place: Path) -> None:
        self.place = place

    def dispatcher(self) -> LocalDispatcher:
        return LocalDispatcher(self.place, SHELL, ENVIRONMENT)

    def unreachable(self) -> None:
        return None

    async def clear(self) -> None:
        dispatcher = self.dispatcher()
        await dispatcher.cancel(await dispatcher.alive())


def away(sites: Sites, cluster: str, place: Path) -> Path:
    """Return a configuration by which a cluster's controller is where nobody answers."""
    gone = place / "gone.conf"
    text = sites.slurm(cluster).read_text()
    gone.write_text(
        "\n".join("SlurmctldPort=9" if "SlurmctldPort" in line else line for line in text.splitlines())
        + "\nMessageTimeout=2\n"
    )
    return gone


class SlurmGround:
    patience = 20.0

    def __init__(self, place: Path, sites: Sites, cluster: str) -> None:
        self.place = place
        self.sites = sites
        self.cluster = cluster

    def dispatcher(
        self, agent: Sequence[str] = SHELL, *, partition: str = "", tools: Path | None = None
    ) -> SlurmDispatcher:
        """Return a dispatcher that finds the tools in `tools`, if given, before Slurm's own."""
        cluster = Cluster(configuration=str(self.sites.slurm(self.cluster)), partition=partition)
        path = f"{tools}:{ENVIRONMENT['PATH']}" if tools else ENVIRONMENT["PATH"]
        return SlurmDispatcher(cluster, self.place, agent, {"PATH": path})

    def unreachable(self) -> SlurmDispatcher:
        gone = away(self.sites, self.cluster, self.place)
        return SlurmDispatcher(Cluster(configuration=str(gone)), self.place / "gone", SHELL, ENVIRONMENT)

    async def clear(self) -> None:
        self.sites.run(self.cluster, "scancel", "--me")


class ArcGround:
    patience = 180.0
    """A-REX looks at its jobs each few seconds, tells of them each few, and feeds its batch system one by one."""

    def __init__(self, sites: Sites, *, by: str = "proxy") -> None:
        self.sites = sites
        self._told = sites.told["arc"]
        self._by = {by: self._told[by]}

    def dispatcher(self, agent: Sequence[str] = SHELL, *, queue: str = "main") -> ArcDispatcher:
        return ArcDispatcher(self.element(self._told["url"], queue), agent)

    def unreachable(self) -> ArcDispatcher:
        return ArcDispatcher(self.element("https://localhost:9/arex", "main"), SHELL)

    def element(self, url: str, queue: str) -> ArcEndpoint:
        return ArcEndpoint(url=url, queue=queue, authorities=self._told["authority"], **self._by)

    async def clear(self) -> None:
        """End its jobs: they would run on in the cluster behind it for an hour."""
        dispatcher = self.dispatcher()
        await dispatcher.cancel(await dispatcher.alive())


class FakeHTCondorGround:
    """HTCondor by a fake of its tools on the PATH: no package brings its daemons here."""

    patience = 30.0

    def __init__(self, place: Path) -> None:
        self.place = place / "pilots"
        self._environment = fake_condor.install(place / "bin")

    def dispatcher(self) -> HTCondorDispatcher:
        return HTCondorDispatcher(CondorPool(), self.place, SHELL, self._environment)

    def unreachable(self) -> HTCondorDispatcher:
        return HTCondorDispatcher(CondorPool(schedd="away"), self.place, SHELL, self._environment)

    async def clear(self) -> None:
        await self.dispatcher().cancel([PilotId(place.name) for place in self.place.glob("*")])


class FakePbsGround:
    """PBS by a fake of Torque's tools: no package brings its server here. PbsOverSlurmGround has real ones."""

    patience = 30.0

    def __init__(self, place: Path) -> None:
        self.place = place / "pilots"
        self.queue = place / "bin" / "queue"
        self._environment = fake_batch.install(place / "bin")

    def dispatcher(self, server: PbsServer | None = None) -> PbsDispatcher:
        return PbsDispatcher(server or PbsServer(), self.place, SHELL, self._environment)

    def unreachable(self) -> PbsDispatcher:
        return self.dispatcher(PbsServer(server="away"))

    async def clear(self) -> None:
        await self.dispatcher().cancel(await self.dispatcher().alive())


class FakeLsfGround:
    """LSF by a fake of its tools: no package brings its daemons here."""

    patience = 30.0

    def __init__(self, place: Path) -> None:
        self.place = place / "pilots"
        self.queue = place / "bin" / "queue"
        self._environment = fake_batch.install(place / "bin")

    def dispatcher(self, cluster: LsfCluster | None = None) -> LsfDispatcher:
        return LsfDispatcher(cluster or LsfCluster(), self.place, SHELL, self._environment)

    def unreachable(self) -> LsfDispatcher:
        return self.dispatcher(LsfCluster(configuration="away"))

    async def clear(self) -> None:
        await self.dispatcher().cancel(await self.dispatcher().alive())


class PbsOverSlurmGround:
    """PBS by the commands of Torque's that Slurm's authors wrote, over a real Slurm."""

    patience = 30.0

    def __init__(self, place: Path, sites: Sites) -> None:
        self.place = place
        self.sites = sites

    def dispatcher(self) -> PbsDispatcher:
        return self._dispatcher(self.sites.slurm("alpha"), self.place)

    def unreachable(self) -> PbsDispatcher:
        return self._dispatcher(away(self.sites, "alpha", self.place), self.place / "gone")

    def _dispatcher(self, configuration: Path, place: Path) -> PbsDispatcher:
        return PbsDispatcher(PbsServer(), place, SHELL, {**ENVIRONMENT, "SLURM_CONF": str(configuration)})

    async def clear(self) -> None:
        self.sites.run("alpha", "scancel", "--me")
