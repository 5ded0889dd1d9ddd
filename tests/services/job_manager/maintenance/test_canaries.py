"""Canaries: they release an element, or lengthen its pause."""

from tests.services.elements import TERMS, Place
from tests.services.world import user
from wms.job.reasons import Code
from wms.matching.canary import OWNER
from wms.messages import replies


async def test_a_canary_that_comes_back_releases_the_element(place: Place) -> None:
    await place.eaten()
    assert await place.canaries() == [], "it is left alone for a minute first"
    await place.later(60)
    await place.look()
    assert (await place.states())["hole"] == "probing"
    (canary,) = await place.canaries()
    await place.world.submitted(5)
    assert await place.run("good", 5) != [canary], "it is for the element that is tried"
    assert await place.run("hole", 5) == [canary], "and it is all that this one gets"
    await place.look()
    assert (await place.states())["hole"] == "healthy"
    await place.world.submitted(2)
    assert len(await place.run("hole", 2)) == 2
    await place.look()
    assert (await place.states())["hole"] == "healthy", "what was before is not held against it again"


async def test_a_canary_that_fails_doubles_the_pause(place: Place) -> None:
    await place.eaten()
    await place.later(60)
    await place.look()
    assert len(await place.run("hole", 1, Code.EXIT_CODE)) == 1
    await place.look()
    assert (await place.states())["hole"] == "quarantined"
    (row,) = await place.world.sql("select relapses, until - now() as pause from ce_state where ce = 'hole'")
    assert row["relapses"] == 1
    assert 100 < row["pause"].total_seconds() <= 120


async def test_a_canary_that_does_not_come_back_has_failed_and_is_killed(place: Place) -> None:
    await place.eaten()
    await place.later(60)
    await place.look()
    (canary,) = await place.canaries()
    await place.later(TERMS.probe_seconds + 1)
    await place.look()
    assert (await place.states())["hole"] == "quarantined"
    assert await place.world.state(canary) == "Killed"


async def test_nobody_submits_as_the_system(place: Place) -> None:
    reply = await place.world.submit(who=user(OWNER))
    assert isinstance(reply, replies.Refused)
    assert reply.code == "NOT_ALLOWED"
