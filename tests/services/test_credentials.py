"""What a token says of a user besides owner, group and VO: sites let in who it is, and nobody who only says so."""

from typing import Any

import asyncpg
import msgspec
import pytest

from tests.services.test_two_sided import advertise, match
from tests.services.world import World, user
from wms.audit.queues import checks
from wms.auth.principal import Principal
from wms.bus.consumer import Delivery
from wms.glue.ad import EXPRESSIONS
from wms.ids import CommandId
from wms.matching.grouping import DEFAULT_SEGMENTS
from wms.messages import replies
from wms.messages.commands import Command, Submit

pytestmark = pytest.mark.asyncio(loop_scope="session")

SUBJECT = "/C=IT/O=INFN/CN=Anna"
ROLES = ("/lhcb/Role=production", "/lhcb")


def anna(**said: Any) -> Principal:
    return msgspec.structs.replace(user("anna"), **said)


async def submitted(world: World, who: Principal, **description: Any) -> int:
    reply = await world.submit(description, who=who)
    assert isinstance(reply, replies.Submitted), reply
    return reply.ids[0][0]


async def only_anna(world: World) -> None:
    await advertise(
        world,
        requirements="AuthorizationCheck",
        expressions=EXPRESSIONS,
        attributes={"GlueCEAccessControlBaseRule": [SUBJECT]},
    )


async def test_a_site_that_lets_a_certificate_in_gets_the_jobs_of_its_owner_alone(the_world: World) -> None:
    await only_anna(the_world)
    others = await submitted(the_world, user("bob"))
    unproven = await submitted(the_world, anna())
    mine = await submitted(the_world, anna(certificate_subject=SUBJECT))
    assert await match(the_world) == [mine]
    assert not await match(the_world)
    assert [await the_world.state(each) for each in (others, unproven)] == ["Waiting"] * 2


@pytest.mark.parametrize(
    "name", ["CertificateSubject", "certificatesubject", "VOMS_FQAN", "Owner", "x509UserProxySubject"]
)
async def test_nobody_says_in_a_description_who_he_is(the_world: World, name: str) -> None:
    refused = await the_world.submit({"attributes": {name: SUBJECT}}, who=user("mallory"))
    assert isinstance(refused, replies.Refused)
    assert refused.code == "DESCRIPTION_INVALID"


async def test_roles_are_told_to_sites_the_primary_one_first(the_world: World) -> None:
    await advertise(the_world, requirements='other.VOMS_FQAN == "/lhcb/Role=production"')
    plain = await submitted(the_world, anna(fqans=("/lhcb", "/lhcb/Role=production")))
    producer = await submitted(the_world, anna(fqans=ROLES))
    assert await match(the_world) == [producer]
    assert not await match(the_world)
    await advertise(the_world, requirements='member("/lhcb/Role=production", other.VOMS_FQANs)')
    assert await match(the_world) == [plain]


async def test_a_sites_rule_for_a_role_lets_in_whose_primary_role_it_is(the_world: World) -> None:
    await advertise(
        the_world,
        requirements="AuthorizationCheck",
        expressions=EXPRESSIONS,
        attributes={"GlueCEAccessControlBaseRule": ["VOMS:/lhcb/Role=production"]},
    )
    await submitted(the_world, anna())
    await submitted(the_world, anna(fqans=("/lhcb", "/lhcb/Role=production")))
    producer = await submitted(the_world, anna(fqans=ROLES))
    assert await match(the_world) == [producer]
    assert not await match(the_world)


async def test_jobs_of_one_owner_with_one_certificate_share_a_queue(the_world: World) -> None:
    for who in (anna(), anna(certificate_subject=SUBJECT), anna(certificate_subject=SUBJECT)):
        await submitted(the_world, who)
    rows = await the_world.sql("select distinct tq_id from job")
    assert len(rows) == 2


async def test_commands_of_one_batch_keep_each_its_own_credentials(the_world: World) -> None:
    await only_anna(the_world)
    job = (msgspec.Raw(b'{"executable":"/bin/true"}'),)
    principals = [anna(), anna(certificate_subject=SUBJECT)]
    submits = [Submit(command_id=CommandId(f"c-{n}"), jobs=job) for n in range(2)]
    batch: list[Delivery[Command]] = [Delivery(*each) for each in zip(principals, submits, strict=True)]
    async with the_world.db.transaction() as tx:
        await the_world._commands.handle(tx, batch)
    told = {
        each.command_id: each.ids[0][0]
        for each in the_world.replies("anna")
        if isinstance(each, replies.Submitted)
    }
    assert await match(the_world) == [told[CommandId("c-1")]]
    assert not await match(the_world)


async def test_the_audit_finds_jobs_with_credentials_in_their_queues(the_world: World) -> None:
    description = {
        "sites": ["LCG.Two.org", "lcg.one.org"],
        "banned_sites": ["LCG.ONE.org"],
        "stations": ["fnal", "FNAL"],
        "tags": ["GPU"],
        "min_processors": 2,
        "whole_node": True,
        "max_memory_mb": 4_000,
        "memory_mb": 2_000,
        "disk_mb": 1_000,
        "grid_middlewares": ["ARC"],
    }
    await submitted(the_world, anna(certificate_subject=SUBJECT, fqans=ROLES), **description)
    connection = await asyncpg.connect(the_world.url)
    try:
        found = await checks(connection, DEFAULT_SEGMENTS)
    finally:
        await connection.close()
    assert [violation for check in found for violation in check.violations] == []
