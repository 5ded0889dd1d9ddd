"""Tokens that are forged, or true and of somebody who is not there."""

import base64

from tests.hostile.innocent import Innocent
from tests.hostile.target import Target
from tests.hostile.test_ads import advertisement
from tests.waiting import eventually
from wms.auth.token import Claims
from wms.embedded.keys_and_tokens import VO
from wms.ids import CommandId, PilotId, RequestId
from wms.messages import ads, commands, match_requests, replies
from wms.site import Resource

REQUESTS = 5_000
NOBODY = "p-00000000000000bad"


async def test_a_forged_token_brings_nothing_into_the_inbox_of_whose_name_it_bears(
    target: Target, innocent: Innocent
) -> None:
    real = target.user_token(innocent.owner)
    head, body, signature = real.split(".")
    operator = base64.urlsafe_b64encode(
        base64.urlsafe_b64decode(body + "==").replace(b'"users"', b'"wheel"')
    ).rstrip(b"=")
    mallory = target.user_token("mallory").split(".")[2]
    forged = [
        f"{head}.{operator.decode()}.{signature}",
        f"{head}.{body}.{mallory}",
        base64.urlsafe_b64encode(b'{"alg":"none","typ":"JWT"}').rstrip(b"=").decode() + f".{body}.",
        "x" * 20_000,
        "",
    ]
    order = commands.Control(
        command_id=CommandId("kill-all"),
        action="kill",
        selector=commands.Selector(everything=True),
        reason="",
        client="c",
    )
    reader = await target.kafka.reader(replies.inbox(innocent.owner))
    await reader.assign_end()
    async with innocent.beside():
        for token in forged:
            await target.send(commands.TOPIC, [order] * 4, token)
    found = [each.payload for each in await reader.poll(1.0, 10_000)]
    await reader.close()
    assert found, "the innocent user's own replies are seen"
    assert not any(b"kill-all" in each for each in found)


async def test_a_pilot_that_is_not_there_gets_no_jobs_however_often_it_asks(
    target: Target, innocent: Innocent
) -> None:
    claims = Claims(
        kind="pilot", owner="mallory", group="users", vo=VO, rights=frozenset({"generic_pilot"}), pilot_id=NOBODY,
        site="Nowhere", ce="ce",
    )  # fmt: skip
    token = target.token(claims)
    resource = Resource(setup="default", vo=VO, cpu_time=10**6, processors=1, memory_mb=10**5)
    asked = [
        match_requests.MatchRequest(
            request_id=RequestId(f"r-{n}"), pilot_id=PilotId(NOBODY), resource=resource, slots=64
        )
        for n in range(REQUESTS)
    ]
    async with innocent.beside():
        for begin in range(0, REQUESTS, 250):
            await target.send(match_requests.TOPIC, asked[begin : begin + 250], token)
    pilots = await innocent.client.pilots(ended=True)
    assert NOBODY not in {each.pilot_id for each in pilots}


async def test_a_site_speaks_for_itself_alone(target: Target, innocent: Innocent) -> None:
    before = {(each.site, each.ce) for each in await innocent.client.sites()}
    async with innocent.beside():
        await target.send(ads.TOPIC, [advertisement("ce-stolen")], target.site_token("Gondor"))
        await target.send(ads.TOPIC, [advertisement("ce-stolen")], target.user_token("mallory"))
        await target.send(ads.TOPIC, [advertisement("ce-own")], target.site_token("Mordor"), partition=1)

        async def there() -> bool:
            return ("Mordor", "ce-own") in {(each.site, each.ce) for each in await innocent.client.sites()}

        await eventually(there)
    after = {(each.site, each.ce) for each in await innocent.client.sites()}
    assert ("Mordor", "ce-stolen") not in after
    assert before <= after
