"""Who comes in, and who no more: revocations, the audit trail, and users of a real OpenID provider, through a real job manager."""

import time
from pathlib import Path

import msgspec
import pytest

from tests.openid_provider import OpenIdProvider, ec_key
from tests.system.place import Place, owner, place
from tests.waiting import eventually
from wms.client import Client, ClientSettings, JobDescription, Rejected, select
from wms.files import write_secret

__all__ = ["owner", "place"]

HELLO = JobDescription(executable="echo", arguments=("hello",), name="hello")
EFFECTIVE_SECONDS = 5.0


def operator(place: Place) -> ClientSettings:
    settings = place.settings("oz")
    place.token("oz", rights=("operator",))
    return settings


async def refused(client: Client) -> str:
    try:
        await client.whoami()
    except Rejected as fault:
        return fault.code
    return ""


async def test_a_revoked_user_is_refused_within_seconds_and_let_in_again(place: Place, owner: str) -> None:
    async with (
        Client.connect(place.settings(owner)) as alice,
        Client.connect(operator(place)) as oz,
    ):
        job_id = (await alice.submit(HELLO)).ids[0][0]
        await oz.revoke("subject", owner, reason="a stolen laptop")
        began = time.monotonic()
        assert await eventually(lambda: refused(alice)) == "TOKEN_REVOKED"
        assert time.monotonic() - began < EFFECTIVE_SECONDS
        with pytest.raises(Rejected, match="TOKEN_REVOKED"):
            await alice.kill(select(job_id))
        assert [each.value for each in await oz.revocations()] == [owner]
        await oz.revoke("subject", owner, lift=True)
        await eventually(lambda: _is_in(alice))
        await alice.kill(select(job_id))
        trail = [each async for each in oz.audit_trail(owner=owner)]
        assert [(each.action, each.code) for each in trail] == [("kill", ""), ("kill", "TOKEN_REVOKED")]
        assert [each.action async for each in oz.audit_trail(owner="oz", action="revoke")] == ["revoke"] * 2
        assert [each.action async for each in alice.audit_trail(job=job_id)] == ["kill"] * 2


async def test_a_restart_lets_nobody_in_who_was_revoked(place: Place, owner: str) -> None:
    async with Client.connect(place.settings(owner)) as alice, Client.connect(operator(place)) as oz:
        token_id = (await alice.whoami()).token_id
        await alice.revoke("token", token_id, reason="it was in a log")
        assert await eventually(lambda: refused(alice)) == "TOKEN_REVOKED"
        await place.stop()
        await place.start()
        assert await refused(alice) == "TOKEN_REVOKED"
        place.token(owner)
        assert (await alice.whoami()).owner == owner
        await oz.revoke("token", token_id, lift=True)


async def test_users_of_a_real_provider_come_in_and_rotation_costs_them_seconds(
    place: Place, provider: OpenIdProvider, tmp_path: Path
) -> None:
    place.issuers = (
        f'[[auth.issuers]]\nurl = "{provider.issuer}"\n'
        '[[auth.issuers.rules]]\ngroups = ["/atlas"]\nvo = "atlas"\ngroup = "users"\n'
    )
    first, second = ec_key("first"), ec_key("second")
    await provider.start(first)
    await place.stop()
    await place.start()
    token = tmp_path / "robot.token"
    write_secret(token, await provider.token())
    settings = place.settings("nobody")
    settings = msgspec.structs.replace(
        settings, auth=msgspec.structs.replace(settings.auth, token_file=str(token))
    )
    async with Client.connect(settings) as robot:
        found = await robot.whoami()
        assert (found.owner, found.vo, found.owner_group) == (f"{provider.issuer}#robot", "atlas", "users")
        job_id = (await robot.submit(HELLO)).ids[0][0]
        assert (await robot.show(job_id)).job.owner == found.owner

        provider.stop()
        await provider.start(second, first)
        write_secret(token, await provider.token())
        assert (await robot.whoami()).token_id != found.token_id
        assert (await robot.kill(select(job_id))).changed == 1

        provider.stop()
        assert (await robot.whoami()).owner == found.owner


async def _is_in(client: Client) -> bool:
    return not await refused(client)
