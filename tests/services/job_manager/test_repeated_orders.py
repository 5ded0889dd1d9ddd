"""Orders that come again, and other orders under the id of an earlier one."""

from typing import Any

import msgspec
import pytest

from tests.services.world import World, user
from wms.ids import CommandId
from wms.messages import replies
from wms.messages.commands import Command, Control, Selector, SetShare, Submit

ADMIN = user("ada", "job_administrator")
OF_SYSTEM = msgspec.Raw(b'{"executable":"/bin/true"}')


async def mine(world: World) -> int:
    """Submit a job of the administrator's own, and return its id."""
    return int((await world.submit(who=ADMIN)).ids[0][0])


async def answered(world: World, order: Command) -> Any:
    """Return the answer to an order of the administrator."""
    (answer,) = await world.command(ADMIN, order)
    return answer


def orders(job_id: int) -> list[Command]:
    """Return one order of each kind that is answered in its own way, and one that differs in its action alone, all under one id."""
    named: dict[str, Any] = {"command_id": CommandId("x")}
    selector = Selector(ids=((job_id, job_id),))
    return [
        Submit(jobs=(OF_SYSTEM,), **named),
        Control(action="hold", selector=selector, **named),
        Control(action="kill", selector=selector, **named),
        SetShare(vo="lhcb", owner_group="physics", job_share=2.0, **named),
    ]


@pytest.mark.parametrize("first", range(4))
@pytest.mark.parametrize("second", range(4))
async def test_another_order_under_an_id_that_was_used_is_refused(
    the_world: World, first: int, second: int
) -> None:
    job_id = await mine(the_world)
    both = orders(job_id)[first], orders(job_id)[second]
    answers = [await answered(the_world, each) for each in both]
    assert not isinstance(answers[0], replies.Refused)
    if first == second:
        assert answers[1].repeated
    else:
        assert isinstance(answers[1], replies.Refused)
        assert answers[1].code == "ID_REUSED"


@pytest.mark.parametrize("kind", [Control, SetShare])
async def test_an_order_that_comes_again_from_another_client_is_the_same_order(
    the_world: World, kind: type[Command]
) -> None:
    order: Any = next(each for each in orders(await mine(the_world)) if isinstance(each, kind))
    for client in ("one", "two"):  # a gateway names another one in each request
        answer = await answered(the_world, msgspec.structs.replace(order, client=client))
        assert not isinstance(answer, replies.Refused), answer
        assert (answer.client, answer.repeated) == (client, client == "two")


@pytest.mark.parametrize("kind", [Control, SetShare])
async def test_what_earlier_versions_stored_is_known(the_world: World, kind: type[Command]) -> None:
    job_id = await mine(the_world)
    order: Any = next(each for each in orders(job_id) if isinstance(each, kind))
    stored = order.selector if isinstance(order, Control) else order
    first = await answered(the_world, order)
    await the_world.sql("update submission set body_digest = $1", msgspec.json.encode(stored))
    again = await answered(the_world, order)
    assert (first.repeated, again.repeated) == (False, True)
