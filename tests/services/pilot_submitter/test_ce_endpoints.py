"""What becomes of pilots whose element is away, refuses them, or kills them; and what is kept of those that ended."""

import pytest

from tests.services.pilot_submitter.elements import ENDS, Site, living
from tests.waiting import eventually
from wms.dispatch.local import LocalDispatcher

DIES = ["/bin/sh", "-c", "echo no such library; exit 1"]


async def test_where_pilots_die_unseen_no_more_are_sent_for_a_while(site: Site) -> None:
    provisioning, following = site.build(first=site.dispatcher(LocalDispatcher, "first", DIES))
    await site.advertise("first")
    await site.world.submitted()
    await provisioning.provide()

    async def dead() -> bool:
        await following.follow()
        return await site.pilots() == [("first", "Failed")]

    await eventually(dead)
    for _ in range(3):
        await provisioning.provide()
    assert len(await site.pilots()) == 1
    site.now += 1_000.0
    await provisioning.provide()
    assert len(await site.pilots()) == 2


async def test_what_a_door_says_of_its_pilots_lives_is_news_once(site: Site) -> None:
    await site.advertise("first")
    dispatcher = site.dispatcher(LocalDispatcher, "first", ENDS)
    for lifetime in (3_600.0, 90_000.0):
        provisioning, _ = site.build(living(lifetime), first=dispatcher)
        for _ in range(2):
            await provisioning.provide()
        (row,) = await site.world.sql("select pilot_seconds, xmin::text as written from ad")
        assert row["pilot_seconds"] == lifetime, "a new configuration is told"
        await provisioning.provide()
        (again,) = await site.world.sql("select pilot_seconds, xmin::text as written from ad")
        assert again == row


async def test_the_lives_of_pilots_are_told_again_of_an_ad_that_comes_anew(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.pilot_submitter.provisioning.LIVES_SECONDS", 0.0)
    await site.advertise("first")
    provisioning, _ = site.build(living(3_600.0), first=site.dispatcher(LocalDispatcher, "first", ENDS))
    for _ in range(2):
        await provisioning.provide()
        (row,) = await site.world.sql("select pilot_seconds, xmin::text as written from ad")
        assert row["pilot_seconds"] == 3_600.0
        await site.world.sql("delete from ad")
        await site.advertise("first")
