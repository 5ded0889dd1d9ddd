"""Shares: what was set goes before what the file says, and matchers are told of what changed."""

import pytest

from tests.services.world import World, user
from wms.db import share
from wms.db.database import Database, Parcel, Transaction
from wms.db.share import SourcedShare
from wms.matching.shares import GroupShare, VoGroup
from wms.messages import queue_changes

G: VoGroup = ("v", "g")
FILE, SET = GroupShare(job_share=100.0), GroupShare(job_share=7.0, job_sharing=True)


async def test_what_was_set_holds_until_it_is_reset(tx: Transaction) -> None:
    await share.replace_configured(tx, {G: FILE})
    assert await share.sourced(tx) == {G: SourcedShare(share=FILE, source="file")}
    await share.set_share(tx, G, SET, "ada")
    assert await share.sourced(tx) == {G: SourcedShare(share=SET, source="set", said_by="ada")}
    await share.replace_configured(tx, {G: GroupShare(job_share=5.0)})
    assert (await share.sourced(tx))[G].share == SET
    assert await share.reset(tx, G)
    assert not await share.reset(tx, G)
    assert (await share.sourced(tx))[G].share.job_share == 5.0


async def test_what_the_file_says_no_more_holds_no_more(tx: Transaction) -> None:
    await share.replace_configured(tx, {G: FILE, ("w", "g"): FILE})
    await share.replace_configured(tx, {("w", "g"): FILE})
    assert set(await share.sourced(tx)) == {("w", "g")}
    await share.replace_configured(tx, {})
    assert await share.sourced(tx) == {}


@pytest.mark.parametrize(
    ("shares", "is_news"),
    [({G: FILE}, False), ({G: SET}, True), ({G: FILE, ("v", "h"): FILE}, True), ({}, True)],
)
async def test_matchers_are_told_of_a_file_only_if_it_is_news(
    db: Database, shares: dict[VoGroup, GroupShare], *, is_news: bool
) -> None:
    posted: list[Parcel] = []
    async with db.transaction() as tx:
        await share.replace_configured(tx, {G: FILE})
    db.on_posted = posted.extend
    async with db.transaction() as tx:
        await share.replace_configured(tx, shares)
    assert [each.topic for each in posted] == ([queue_changes.TOPIC] if is_news else [])


async def test_who_asks_acts_for_others_where_the_group_shares_its_jobs(tx: Transaction) -> None:
    ann = user("ann", group="g", vo="v")
    assert not (await share.acting(tx, ann)).shares_jobs
    await share.replace_configured(tx, {G: GroupShare(job_sharing=True)})
    assert (await share.acting(tx, ann)).shares_jobs
    await share.set_share(tx, G, GroupShare(job_sharing=False), "ada")
    assert not (await share.acting(tx, ann)).shares_jobs, "what was set goes before the file"
    assert not (await share.acting(tx, user("eve", group="g", vo="w"))).shares_jobs


@pytest.mark.parametrize("watched", [True, False])
async def test_jobs_that_wait_and_run_are_counted_by_owner(the_world: World, *, watched: bool) -> None:
    await the_world.running(2)
    await the_world.submitted(3)
    await the_world.submit({"array": 40}, who=user("bob", vo="cms", group="top"))
    await the_world.watch()
    async with the_world.db.transaction() as tx:
        rows = await share.standing(tx, None, watched=watched)
        assert [tuple(row) for row in rows] == [
            ("cms", "top", "bob", 40, 0),
            ("lhcb", "physics", "ann", 3, 2),
        ]
        assert [row["owner"] for row in await share.standing(tx, "lhcb", watched=watched)] == ["ann"]
