"""Runs a planned trace against a system: its sites advertised, its jobs submitted when due, each as its owner."""

import asyncio
import contextlib
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from wms.auth.keys import SigningKey, load_key
from wms.auth.principal import ANY_SITE, Right
from wms.auth.token import Claims, mint
from wms.bus.kafka import HEADER, Kafka
from wms.cli.trace_plan import CE, Identity, Planned, TracePlan
from wms.client import Client, ClientSettings, Rejected, Submission, Unavailable
from wms.client.settings import TokenSettings
from wms.files import write_secret
from wms.messages.ads import TOPIC, Advertise, Withdraw
from wms.messages.wire import encode
from wms.runtime import clock

OPEN_AT_ONCE = 32
"""Owners with an open connection; for the others it is opened when they submit again."""
TICK_SECONDS = 0.1
AD_SECONDS = 60.0
LIFETIME_SECONDS = 7 * 86_400.0
TIMEOUT_SECONDS = 120.0


class Keys:
    """The local issuer's keys, by which a replay speaks for the owners and sites of its trace."""

    def __init__(self, settings: ClientSettings) -> None:
        if not settings.auth.jwks:
            raise Rejected(
                "NO_ISSUER",
                "the settings name no issuer whose keys are here",
                "replay on the machine where `wms up` runs, or with --fresh",
            )
        place = Path(settings.auth.jwks).parent
        self._issuer: SigningKey = load_key(place / "issuer.pem")
        self._sites: SigningKey = load_key(place / "sites.pem")

    def user(self, identity: Identity, *rights: Right) -> str:
        """Return a token of a user."""
        claims = Claims(
            kind="user",
            owner=identity.owner,
            group=identity.group,
            vo=identity.vo,
            rights=frozenset(rights),
        )
        return mint(self._issuer, claims, LIFETIME_SECONDS, clock.timestamp())

    def sites(self) -> str:
        """Return a token that speaks for the trace's sites."""
        claims = Claims(kind="site", owner="trace", site=ANY_SITE)
        return mint(self._sites, claims, LIFETIME_SECONDS, clock.timestamp())


class Owners:
    """Connections of the trace's owners: opened when needed, the one unused for longest closed when there are many."""

    def __init__(self, settings: ClientSettings, keys: Keys, directory: Path) -> None:
        self._settings = settings
        self._keys = keys
        self._directory = directory
        self._open: OrderedDict[Identity, tuple[Client, contextlib.AsyncExitStack]] = OrderedDict()

    async def submit(self, batches: dict[Identity, list[Planned]], run: str) -> list[tuple[Planned, int]]:
        """Submit each owner's jobs, all owners at once as far as connections go; return each job with its id."""
        submitted: list[tuple[Planned, int]] = []
        identities = list(batches)
        for start in range(0, len(identities), OPEN_AT_ONCE):
            part = identities[start : start + OPEN_AT_ONCE]
            clients = [await self._client(identity, keep=part) for identity in part]
            answers = await asyncio.gather(
                *(
                    _submit(client, batches[identity], f"{run}/{identity.owner}/{identity.group}")
                    for client, identity in zip(clients, part, strict=True)
                )
            )
            for identity, answer in zip(part, answers, strict=True):
                submitted += zip(batches[identity], answer.job_ids(), strict=True)
        return submitted

    @contextlib.asynccontextmanager
    async def operator(self) -> AsyncIterator[Client]:
        """Connect as one who may see and kill the jobs of all."""
        identity = Identity("trace-replay", "trace-replay", "trace-replay")
        async with Client.connect(
            self._settings_of(identity, Right.OPERATOR), timeout=TIMEOUT_SECONDS
        ) as client:
            yield client

    async def close(self) -> None:
        """Close all connections."""
        for _, stack in self._open.values():
            await stack.aclose()
        self._open.clear()

    async def _client(self, identity: Identity, keep: Sequence[Identity]) -> Client:
        if identity not in self._open:
            if len(self._open) >= OPEN_AT_ONCE:
                unused = next(each for each in self._open if each not in keep)
                await self._open.pop(unused)[1].aclose()
            stack = contextlib.AsyncExitStack()
            connecting = Client.connect(self._settings_of(identity), timeout=TIMEOUT_SECONDS)
            self._open[identity] = (await stack.enter_async_context(connecting), stack)
        self._open.move_to_end(identity)
        return self._open[identity][0]

    def _settings_of(self, identity: Identity, *rights: Right) -> ClientSettings:
        file = self._directory / f"{identity.owner}.{identity.group}.token"
        write_secret(file, self._keys.user(identity, *rights), durable=False)
        return msgspec.structs.replace(self._settings, auth=TokenSettings(token_file=str(file)))


async def _submit(client: Client, jobs: Sequence[Planned], command_id: str) -> Submission:
    return await client.submit([job.description for job in jobs], id=command_id)


@contextlib.asynccontextmanager
async def advertised(settings: ClientSettings, keys: Keys, plan: TracePlan) -> AsyncIterator[None]:
    """Let the trace's computing elements be there: advertised again and again, and withdrawn at the end."""
    kafka = Kafka(settings.kafka, "wms-replay")
    await kafka.start()
    headers = [(HEADER, f"Bearer {keys.sites()}".encode())]
    names = [f"{element.site}/{CE}".encode() for element in plan.elements]

    async def publish() -> None:
        now = clock.now()
        ads = [
            Advertise(element=element, advertised_at=now, lifetime_seconds=3 * AD_SECONDS)
            for element in plan.elements
        ]
        await kafka.send_many(TOPIC, names, [encode(ad) for ad in ads], headers)

    async def repeat() -> None:
        while True:
            await asyncio.sleep(AD_SECONDS)
            with contextlib.suppress(Unavailable):
                await publish()

    try:
        await publish()
        repeating = asyncio.create_task(repeat())
        try:
            yield
        finally:
            repeating.cancel()
            gone = [Withdraw(site=each.site, ce=CE, advertised_at=clock.now()) for each in plan.elements]
            with contextlib.suppress(Unavailable):
                await kafka.send_many(TOPIC, names, [encode(each) for each in gone], headers)
    finally:
        await kafka.close()


class Feeding:
    """Submits the jobs as they come due; `submitted` grows, and `lag` says how far behind the trace it is, in seconds."""

    def __init__(self, plan: TracePlan, owners: Owners) -> None:
        self._plan = plan
        self._owners = owners
        self._run = uuid.uuid4().hex
        self.submitted: dict[int, Planned] = {}
        self.longest_lag = 0.0

    async def run(self) -> None:
        """Submit all jobs, each not before it is due."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        jobs = self._plan.jobs
        at = 0
        while at < len(jobs):
            passed = loop.time() - began
            until = at
            while until < len(jobs) and jobs[until].due <= passed:
                until += 1
            if until > at:
                self.longest_lag = max(self.longest_lag, passed - jobs[at].due)
                await self._submit(jobs[at:until], at)
                at = until
            else:
                await asyncio.sleep(max(TICK_SECONDS, jobs[at].due - passed))

    async def _submit(self, jobs: Sequence[Planned], at: int) -> None:
        batches: dict[Identity, list[Planned]] = {}
        for job in jobs:
            batches.setdefault(job.identity, []).append(job)
        taken = await self._owners.submit(batches, f"{self._run}/{at}")
        self.submitted.update((job_id, job) for job, job_id in taken)
