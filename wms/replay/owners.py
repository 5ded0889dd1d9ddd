"""The users to whom the jobs of a trace belong: their tokens, signed with this machine's keys, and their connections."""

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from wms.auth.keys import SigningKey, load_key
from wms.auth.principal import ANY_SITE, Right
from wms.auth.token import Claims, mint
from wms.client import Client, ClientSettings, Rejected, Submission
from wms.client.settings import TokenSettings
from wms.files import write_secret
from wms.ids import Identity
from wms.replay.plan import Planned
from wms.runtime import clock

OPEN_AT_ONCE = 32
"""The most users that have a connection at the same time. Others get one when their next job is due."""
LIFETIME_SECONDS = 7 * 86_400.0
TIMEOUT_SECONDS = 120.0


class Keys:
    """The system's signing keys on this machine, with which a replay signs tokens for the users and sites of its trace."""

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
        """Return a new token for a user with these rights, valid for a week."""
        claims = Claims(
            kind="user",
            owner=identity.owner,
            group=identity.group,
            vo=identity.vo,
            rights=frozenset(rights),
        )
        return mint(self._issuer, claims, LIFETIME_SECONDS, clock.timestamp())

    def sites(self) -> str:
        """Return a new token for publishing the ads of the trace's sites, valid for a week."""
        claims = Claims(kind="site", owner="trace", site=ANY_SITE)
        return mint(self._sites, claims, LIFETIME_SECONDS, clock.timestamp())


class Owners:
    """The connections of the trace's users to the system, each opened when it is needed.

    If there are more than `OPEN_AT_ONCE`, the least recently used one is closed. Users' tokens are written into `directory`.
    """

    def __init__(self, settings: ClientSettings, keys: Keys, directory: Path) -> None:
        self._settings = settings
        self._keys = keys
        self._directory = directory
        self._open: OrderedDict[Identity, tuple[Client, contextlib.AsyncExitStack]] = OrderedDict()

    async def submit(self, batches: dict[Identity, list[Planned]], run: str) -> list[tuple[Planned, int]]:
        """Submit jobs, grouped by user, for many users in parallel. Return each job with its id.

        `run` is a name of this replay that makes the ids of its submissions unique.
        """
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
        """Connect, for an `async with` block, as an operator, who may see and kill all jobs."""
        identity = Identity("trace-replay", "trace-replay", "trace-replay")
        async with Client.connect(
            self._settings_of(identity, Right.OPERATOR), timeout=TIMEOUT_SECONDS
        ) as client:
            yield client

    async def close(self) -> None:
        """Close the connections of all users."""
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
