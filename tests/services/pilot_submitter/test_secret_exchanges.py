"""A pilot's one-time secret is exchanged once for its token and key; every other exchange is refused, and a used secret's is recorded."""

import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from services.pilot_submitter.config import Config, PilotFactorySettings, PilotSandboxSettings
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.secret_exchanges import COPIED, SecretExchanges
from tests.services.world import World
from wms.auth.keys import generate_keys, load_key
from wms.auth.orders import OrderKeys, PilotCredential, claimed_end
from wms.auth.pilot_secret import PilotSecret
from wms.auth.revocations import Revocations
from wms.auth.token import Verifier
from wms.bus.delivery import Delivery
from wms.db import revocation
from wms.db.pilot import NewPilot, supply
from wms.errors import Rejected
from wms.ids import PilotId
from wms.messages.pilot_exchange import ANSWERS_TOPIC, ExchangeAnswer, ExchangeRefusal, SecretExchange
from wms.runtime import clock
from wms.runtime.config import AuthSettings

ORDERS = OrderKeys([b"k" * 32])
NUMBERS = itertools.count(1)
DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(ExchangeAnswer)


class Counter:
    """The service that exchanges secrets, and a pilot with one."""

    def __init__(self, world: World, place: Path) -> None:
        generate_keys(place / "keys")
        pilots = PilotFactorySettings(directory="/x", keys=str(place / "keys"), token_seconds=600)
        config = Config(
            auth=AuthSettings(jwks=""), pilots=pilots, sandboxes=PilotSandboxSettings(url="file:///x")
        )
        self.world = world
        self.maker = PilotFactory(config, load_key(place / "keys" / "pilots.pem"), ORDERS)
        self.revocations = Revocations()
        self.verifier = Verifier.from_file(place / "keys" / "jwks.json", revocations=self.revocations)
        self.exchanges = SecretExchanges(self.maker, ORDERS)

    async def send(self, pilot_id: str = "p-1", **more: Any) -> None:
        """Store a pilot that is sent with a secret."""
        new = NewPilot(
            pilot_id=PilotId(pilot_id),
            site="A",
            ce="a1",
            vo="lhcb",
            dispatcher="slurm",
            slots=1,
            link="gateway",
            **more,
        )
        async with self.world.db.transaction() as tx:
            await self.maker.store(tx, [new])

    def asked(self, secret: PilotSecret, exchange_id: str = "") -> SecretExchange:
        name = exchange_id or f"{next(NUMBERS):032x}"
        return SecretExchange(pilot_id=PilotId(secret.pilot_id), exchange_id=name, proof=secret.proof(name))

    async def answer(self, *asked: SecretExchange) -> list[Any]:
        async with self.world.db.transaction() as tx:
            await self.exchanges.handle(tx, [Delivery(None, each) for each in asked])
        return [DECODER.decode(payload) for payload in self.world.take(ANSWERS_TOPIC)]

    async def code(self, asked: SecretExchange) -> str:
        (answer,) = await self.answer(asked)
        return answer.code if isinstance(answer, ExchangeRefusal) else "granted"

    async def recorded(self) -> list[str]:
        rows = await self.world.sql(
            "select subject, code from audit_record where action = 'exchange-secret' order by audit_record_id"
        )
        return [row["code"] for row in rows]


@pytest_asyncio.fixture(loop_scope="session")
async def counter(the_world: World, tmp_path: Path) -> AsyncIterator[Counter]:
    made = Counter(the_world, tmp_path)
    await made.send()
    yield made


def secret_of(pilot_id: str = "p-1") -> PilotSecret:
    return ORDERS.secrets_of(pilot_id)[0]


async def test_a_secret_is_exchanged_for_a_token_bound_to_its_pilot_and_its_key(counter: Counter) -> None:
    secret = secret_of()
    asked = counter.asked(secret)
    (answer,) = await counter.answer(asked)
    credential = PilotCredential.parse(secret.opened(asked.exchange_id, answer.sealed))
    bearer = counter.verifier.verify(credential.token, clock.timestamp())
    assert (bearer.kind, bearer.pilot_id, bearer.site, bearer.ce, bearer.vo) == (
        "pilot",
        "p-1",
        "A",
        "a1",
        "lhcb",
    )
    assert credential.key == ORDERS.of_pilot("p-1")
    assert claimed_end(credential.token) <= clock.timestamp() + 600
    # From now on the token is renewed as that of any other pilot is.
    assert [
        row["due"] for row in await counter.world.sql("select token_until > now() as due from pilot")
    ] == [True]


async def test_only_the_hash_of_the_secret_is_stored(counter: Counter) -> None:
    (row,) = await counter.world.sql("select * from pilot_secret")
    assert row["digest"] == secret_of().digest
    assert secret_of().secret not in row.values()
    assert [row["token_until"] for row in await counter.world.sql("select token_until from pilot")] == [None]


async def test_an_answer_that_was_lost_is_given_again_under_the_same_exchange(counter: Counter) -> None:
    asked = counter.asked(secret_of())
    assert [await counter.code(asked), await counter.code(asked)] == ["granted", "granted"]
    await counter.world.sql("update pilot_secret set exchanged_at = now() - interval '1 hour'")
    assert await counter.code(asked) == "SECRET_USED"


async def test_a_second_exchange_is_refused_and_recorded_and_what_the_first_got_is_revoked(
    counter: Counter,
) -> None:
    thief = counter.asked(secret_of())
    (answer,) = await counter.answer(thief)
    stolen = PilotCredential.parse(secret_of().opened(thief.exchange_id, answer.sealed)).token
    assert counter.verifier.verify(stolen, clock.timestamp()).pilot_id == "p-1"
    assert await counter.code(counter.asked(secret_of())) == "SECRET_USED"
    assert await counter.recorded() == ["SECRET_USED"]
    async with counter.world.db.transaction() as tx:
        counter.revocations.replace(await revocation.in_force(tx))
    with pytest.raises(Rejected, match="revoked"):
        counter.verifier.verify(stolen, clock.timestamp())
    assert await counter.code(thief) == "PILOT_ENDED", "nor is it given again"


async def test_a_pilot_whose_secret_was_copied_counts_no_more_and_keeps_its_leases_until_they_run_out(
    counter: Counter,
) -> None:
    await counter.answer(counter.asked(secret_of()), counter.asked(secret_of()))
    (pilot,) = await counter.world.sql("select state, reason, ended_at, token_until from pilot")
    assert (pilot["state"], pilot["reason"]) == ("Aborted", COPIED)
    async with counter.world.db.transaction() as tx:
        assert await supply(tx, [], idle_silent=60.0, busy_silent=60.0) == []
    (revoked,) = await counter.world.sql("select value, expires_at from revocation")
    assert revoked["value"] == "p-1"
    assert revoked["expires_at"] >= pilot["token_until"]


async def test_two_exchanges_in_one_batch_are_told_apart(counter: Counter) -> None:
    answers = await counter.answer(counter.asked(secret_of()), counter.asked(secret_of()))
    assert [getattr(each, "code", "granted") for each in answers] == ["granted", "SECRET_USED"]


async def test_nobody_fills_the_audit_trail_by_a_used_secret(counter: Counter) -> None:
    await counter.answer(*(counter.asked(secret_of()) for _ in range(20)))
    await counter.answer(*(counter.asked(secret_of()) for _ in range(14)))
    # The 1st, 2nd, 4th, 8th, 16th and 32nd of them.
    assert len(await counter.recorded()) == 6


async def test_a_secret_of_another_pilot_or_of_nobody_gets_nothing(counter: Counter) -> None:
    await counter.send("p-2")
    stolen = counter.asked(secret_of("p-2"))
    for asked in (
        msgspec.structs.replace(stolen, pilot_id=PilotId("p-1")),
        counter.asked(PilotSecret("p-1", b"?" * 32)),
        counter.asked(secret_of("p-unknown")),
        msgspec.structs.replace(counter.asked(secret_of()), exchange_id="f" * 32),
    ):
        assert await counter.code(asked) == "SECRET_REFUSED"
    assert await counter.recorded() == []
    assert await counter.code(stolen) == "granted"


async def test_a_secret_expires_and_ends_with_its_pilot(counter: Counter) -> None:
    await counter.world.sql("update pilot_secret set expires_at = now() - interval '1 s'")
    assert await counter.code(counter.asked(secret_of())) == "SECRET_EXPIRED"
    await counter.send("p-ended")
    await counter.world.sql(
        "update pilot set ended_at = now(), state = 'Failed', cause = 'PILOT_DIED' where pilot_id = 'p-ended'"
    )
    assert await counter.code(counter.asked(secret_of("p-ended"))) == "PILOT_ENDED"
    await counter.send("p-lost")
    await counter.world.sql(
        "update pilot set ended_at = now(), state = 'Failed', cause = 'NODE_LOST' where pilot_id = 'p-lost'"
    )
    assert await counter.code(counter.asked(secret_of("p-lost"))) == "granted"


@pytest.mark.parametrize("link", ["kafka", "gateway"])
async def test_access_to_the_broker_goes_only_with_pilots_that_use_it(counter: Counter, link: Any) -> None:
    table = counter.maker._way(link)
    assert set(table) == {link}
