"""Reservations under attack: forged messages, true ones about another's job, times that cannot be, and ten thousand offers of one VO."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import msgspec
import pytest
import pytest_asyncio

from tests.hostile.innocent import Innocent
from tests.hostile.target import Target, key_for
from tests.waiting import eventually
from wms.agreement.reasons import AgreementReason
from wms.agreement.state import AgreementState
from wms.auth.orders import ORDERS_KEY, OrderKeys
from wms.auth.service_signatures import ServiceSignatures
from wms.auth.token import Claims
from wms.bus.topics import find
from wms.client import Client, JobDescription
from wms.embedded.keys_and_tokens import VO
from wms.errors import Rejected
from wms.files import write_secret
from wms.ids import AgreementId, JobId
from wms.jobdesc.preferences import JobPreferences
from wms.messages.agreements import (
    DECISIONS_TOPIC,
    OFFERS_TOPIC,
    AgreementDecided,
    Cancel,
    Confirm,
    Reserve,
)
from wms.messages.wire import encode
from wms.runtime import clock

MORDOR = "mordor"
"""A VO with a quota of its own in the system under attack: 20 reservations of 8 CPUs at most."""
QUOTA, QUOTA_CPUS = 20, 8
OWNER_QUOTA = QUOTA // 4
"""How many reservations one user of the VO may have."""
OFFERS = 10_000
STRANGER = OrderKeys([b"?" * 32])
LIVING = "('Requested', 'Temporary', 'Confirmed')"
OVER = f"select count(*) = 0 from agreement where job_id = $1 and state in {LIVING}"
AS_IT_IS = "select state, start_at, ends_at, owner, vo, expires_at from agreement where agreement_id = $1"


@pytest_asyncio.fixture(loop_scope="session")
async def database(target: Target) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(target.database)
    yield connection
    await connection.close()


class HeldReservation(msgspec.Struct, frozen=True):
    """A confirmed reservation of the innocent user's, an hour ahead."""

    job_id: int
    agreement_id: str


@pytest_asyncio.fixture(loop_scope="session")
async def held(innocent: Innocent, database: asyncpg.Connection) -> AsyncIterator[HeldReservation]:
    later = JobPreferences(earliest_start_after=3_600.0, latest_start_after=3_600.0)
    submission = await innocent.client.submit(
        JobDescription(executable="/bin/true", cpu_time=60, preferences=later)
    )
    (job_id,) = submission.job_ids()
    confirmed = "select agreement_id from placement where job_id = $1 and agreement_id is not null"
    name = await eventually(lambda: database.fetchval(confirmed, job_id), 120)
    yield HeldReservation(job_id, name)
    await innocent.client.kill(submission.selector())
    await eventually(lambda: database.fetchval(OVER, job_id), 120)


def offer(name: str, job_id: int, **changed: Any) -> Reserve:
    told: dict[str, Any] = {
        "vo": MORDOR,
        "owner": "mallory",
        "group": "users",
        "site": "local",
        "ce": "local",
        "duration_seconds": 600.0,
    }
    return Reserve(agreement_id=AgreementId(name), job_id=JobId(job_id), **(told | changed))


def signed(target: Target, topic: str, messages: Sequence[msgspec.Struct | bytes]) -> list[bytes]:
    """Return messages as a service signs them: what a broker sends that was deceived."""
    keys = OrderKeys.from_file(target.system.layout.keys / ORDERS_KEY)
    notices = ServiceSignatures(keys, clock.timestamp)
    return [notices.sign(topic, each if isinstance(each, bytes) else encode(each)) for each in messages]


async def send(target: Target, topic: str, payloads: Sequence[bytes]) -> None:
    keys = [key_for(topic, None, n) for n in range(len(payloads))]
    await target.kafka.send_many(topic, keys, payloads)


async def all_read(target: Target, database: asyncpg.Connection, name: str) -> None:
    """Wait until the site has read whatever was sent before: each partition's last message is an offer for no job."""
    count = find(OFFERS_TOPIC).partitions
    last = [offer(f"{name}-{n}", 2**40) for n in range(count)]
    keys = [key_for(OFFERS_TOPIC, n, n) for n in range(count)]
    await target.kafka.send_many(OFFERS_TOPIC, keys, signed(target, OFFERS_TOPIC, last))
    query = "select count(*) from agreement where agreement_id like $1 and state = 'Denied'"

    async def denied() -> bool:
        return bool(await database.fetchval(query, f"{name}-%") == count)

    await eventually(denied, 120)


def served_by(target: Target) -> dict[str, int]:
    children = target.system.state().children
    return {name: children[name].starts for name in ("agreement", "resource_broker")}


@contextlib.asynccontextmanager
async def unchanged(
    target: Target, database: asyncpg.Connection, held: HeldReservation
) -> AsyncIterator[None]:
    """See that a reservation and its services are after the body as they were before."""
    before, starts = await database.fetchrow(AS_IT_IS, held.agreement_id), served_by(target)
    yield
    assert await database.fetchrow(AS_IT_IS, held.agreement_id) == before
    assert served_by(target) == starts


def decided(held: HeldReservation, state: AgreementState) -> AgreementDecided:
    return AgreementDecided(
        agreement_id=AgreementId(held.agreement_id),
        job_id=JobId(held.job_id),
        site="local",
        ce="local",
        state=state,
        start_at=datetime(2030, 1, 1, tzinfo=UTC),
        code=AgreementReason.CANCELLED,
    )


async def test_what_no_service_signed_neither_reserves_nor_confirms_nor_cancels(
    target: Target, database: asyncpg.Connection, held: HeldReservation
) -> None:
    name = AgreementId(held.agreement_id)
    orders = [
        Cancel(agreement_id=name, site="local"),
        Confirm(agreement_id=name, site="local"),
        offer("forged", held.job_id, vo=VO, owner=Innocent.owner),
    ]
    decisions = [decided(held, AgreementState.DENIED), decided(held, AgreementState.CONFIRMED)]
    stranger = ServiceSignatures(STRANGER, clock.timestamp)
    async with unchanged(target, database, held):
        for topic, messages in ((OFFERS_TOPIC, orders), (DECISIONS_TOPIC, decisions)):
            plain = [encode(each) for each in messages] * 4
            await send(target, topic, [*plain, *(stranger.sign(topic, each) for each in plain)])
            await target.send(topic, plain, target.user_token("mallory", "operator"))
        await all_read(target, database, "after-forged")
    assert await database.fetchval("select count(*) from agreement where agreement_id = 'forged'") == 0


async def test_a_decision_that_is_not_true_moves_no_job(
    target: Target, innocent: Innocent, database: asyncpg.Connection, held: HeldReservation
) -> None:
    """Decisions are hints, even with a service's signature: the broker reads the table of agreements."""
    lies = [decided(held, each) for each in (AgreementState.DENIED, AgreementState.CANCELLED)] * 4
    async with unchanged(target, database, held):
        before = await innocent.client.ranking(held.job_id)
        await send(target, DECISIONS_TOPIC, signed(target, DECISIONS_TOPIC, lies))
        await all_read(target, database, "after-lies")
        found = await innocent.client.ranking(held.job_id)
        assert [each.attempt for each in found.placements] == [each.attempt for each in before.placements]


async def test_nobody_reserves_for_anothers_job_or_touches_its_reservation(
    target: Target, database: asyncpg.Connection, held: HeldReservation
) -> None:
    own = {"vo": VO, "owner": Innocent.owner, "group": "users"}
    strange = [
        offer("vo", held.job_id, **(own | {"vo": MORDOR})),
        offer("owner", held.job_id, **(own | {"owner": "mallory"})),
        offer("group", held.job_id, **(own | {"group": "orcs"})),
        offer(held.agreement_id, held.job_id, cpus=4),
        Cancel(agreement_id=AgreementId(held.agreement_id), site="Mordor"),
    ]
    async with (
        unchanged(target, database, held),
        Client.connect(target.settings("mallory")) as mallory,
    ):
        await send(target, OFFERS_TOPIC, signed(target, OFFERS_TOPIC, strange))
        await all_read(target, database, "after-strange")
        for attempt in (mallory.ranking(held.job_id), mallory.show(held.job_id)):
            with pytest.raises(Rejected, match="there is no job"):
                await attempt
    rows = await database.fetch(
        "select code from agreement where agreement_id = any ($1)", ["vo", "owner", "group"]
    )
    assert [row["code"] for row in rows] == [AgreementReason.INVALID_OFFER] * 3


def tricks(job_id: int) -> tuple[list[bytes], list[Reserve]]:
    """Return offers with times that cannot be: those that are no offers at all, and those that are to be denied."""
    usual = encode(offer("trick", job_id, duration_seconds=777.0))
    seconds = [b"NaN", b"Infinity", b"-1", b"0", b"1e999", b"1e300", b'"long"', b"null"]
    malformed = [usual.replace(b"777.0", each) for each in seconds]
    malformed += [
        usual.replace(b'"earliest_start":null', b'"earliest_start":"%b"' % each)
        for each in (
            b"0000-00-00T00:00:00Z",
            b"0001-01-01T00:00:00Z",
            b"9999-12-31T23:59:59Z",
            b"99999-01-01T00:00:00Z",
            b"2026-01-01",
            b"NaN",
        )
    ]
    malformed += [
        usual.replace(b'"expires_in_seconds":60.0', b'"expires_in_seconds":%b' % each)
        for each in (b"NaN", b"-1", b"0", b"1e300")
    ]
    assert usual not in malformed
    now = clock.now()
    first, last = datetime(2001, 1, 1, tzinfo=UTC), datetime(2190, 12, 31, 23, 59, 59, tzinfo=UTC)
    denied: list[dict[str, Any]] = [
        {"latest_start": first},
        {"latest_start": now - timedelta(seconds=1)},
        {"earliest_start": last},
        {"earliest_start": last, "latest_start": first},
        {"earliest_start": now + timedelta(days=2), "latest_start": now + timedelta(days=1)},
        {"duration_seconds": 366 * 86_400.0},
        {"cpus": 1_000_000},
    ]
    return malformed, [offer(f"trick-{n}", job_id, **each) for n, each in enumerate(denied)]


@contextlib.asynccontextmanager
async def of_mordor(target: Target, database: asyncpg.Connection) -> AsyncIterator[int]:
    """Yield a held job of a user of another VO; afterwards it is killed, and nothing stays reserved for it."""
    settings = target.settings("mallory")
    claims = Claims(kind="user", owner="mallory", group="users", vo=MORDOR)
    file = target.root / "tokens" / "mallory-of-mordor.token"
    write_secret(file, target.token(claims))
    auth = msgspec.structs.replace(settings.auth, token_file=str(file))
    async with Client.connect(msgspec.structs.replace(settings, auth=auth)) as client:
        submission = await client.submit(JobDescription(executable="/bin/true", cpu_time=60), hold=True)
        (job_id,) = submission.job_ids()
        try:
            yield job_id
        finally:
            await client.kill(submission.selector())
            left = f"select agreement_id from agreement where job_id = $1 and state in {LIVING}"
            names = [AgreementId(row[0]) for row in await database.fetch(left, job_id)]
            cancels = [Cancel(agreement_id=each, site="local") for each in names]
            await send(target, OFFERS_TOPIC, signed(target, OFFERS_TOPIC, cancels))
            await eventually(lambda: database.fetchval(OVER, job_id), 120)


async def test_times_that_cannot_be_reserve_nothing(
    target: Target, database: asyncpg.Connection, held: HeldReservation
) -> None:
    async with unchanged(target, database, held), of_mordor(target, database) as job_id:
        malformed, denied = tricks(job_id)
        endless = offer(
            "endless", job_id, earliest_start=datetime(2001, 1, 1, tzinfo=UTC), expires_in_seconds=86_400.0
        )
        await send(target, OFFERS_TOPIC, signed(target, OFFERS_TOPIC, [*malformed, *denied, endless]))
        await all_read(target, database, "after-tricks")
        undecided = "select count(*) = 0 from agreement where job_id = $1 and state = 'Requested'"
        await eventually(lambda: database.fetchval(undecided, job_id), 120)
        rows = await database.fetch(
            "select agreement_id, state, start_at, expires_at, now() as at from agreement where job_id = $1",
            job_id,
        )
        granted = {row["agreement_id"]: row for row in rows if row["state"] != "Denied"}
        assert len(rows) == len(denied) + 1, "what is no offer is not stored"
        assert set(granted) == {"endless"}
        # The past is now, and nobody keeps an unconfirmed reservation for longer than the site's own bound.
        now = granted["endless"]["at"]
        assert granted["endless"]["start_at"] > now - timedelta(minutes=5)
        assert granted["endless"]["expires_at"] < now + timedelta(seconds=3_700)


async def test_ten_thousand_offers_of_one_vo_leave_room_for_the_innocent(
    target: Target, innocent: Innocent, database: asyncpg.Connection
) -> None:
    query = f"select count(*) as many, coalesce(sum(cpus), 0) as cpus from agreement where vo = $1 and state in {LIVING}"
    wanted = JobDescription(executable="/bin/true", cpu_time=60, preferences=JobPreferences())
    granted = query.replace("'Requested', ", "")
    starts = served_by(target)
    async with of_mordor(target, database) as job_id:
        for n in range(0, OFFERS, 1_000):
            offers = [offer(f"flood-{m}", job_id, expires_in_seconds=600.0) for m in range(n, n + 1_000)]
            await send(target, OFFERS_TOPIC, signed(target, OFFERS_TOPIC, offers))
        submission = await innocent.client.submit(wanted)
        assert await innocent.client.wait(submission.selector(), timeout=120) == {"Done": 1}

        async def all_decided() -> bool:
            at_once = await database.fetchrow(granted, MORDOR)
            assert at_once["many"] <= OWNER_QUOTA
            assert at_once["cpus"] <= QUOTA_CPUS
            decided = (
                "select count(*) from agreement where agreement_id like 'flood-%' and state <> 'Requested'"
            )
            return bool(await database.fetchval(decided) == OFFERS)

        await eventually(all_decided, 180)
        refused = "select count(*) from agreement where agreement_id like 'flood-%' and code = 'OWNER_QUOTA'"
        assert await database.fetchval(refused) == OFFERS - OWNER_QUOTA
    assert served_by(target) == starts
