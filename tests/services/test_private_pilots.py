"""Private pilots: ordered by users and groups, bound by their tokens alone, given their owners' jobs and nobody else's."""

from tests.services.job_manager.queries.explained import why
from tests.services.private import ANN, BOB, EVE, Grounds
from tests.services.world import ids
from wms.auth.principal import Right


async def test_an_owners_pilot_takes_the_owners_jobs_alone_until_the_group_shares_them(
    grounds: Grounds,
) -> None:
    assert "order 1: 1 private pilot" in (await grounds.order(ANN)).said
    (pilot,) = await grounds.sent()
    assert (pilot.owner, pilot.group, pilot.vo) == ("ann", "physics", "lhcb")
    assert Right.GENERIC_PILOT not in pilot.rights
    mine = (await grounds.world.submit({}, {"pilot_types": ["private"]}, who=ANN)).ids
    theirs = (await grounds.world.submit({}, who=BOB)).ids
    await grounds.world.submit({}, who=EVE)
    assert sorted(ids(await grounds.matched(pilot))) == [n for a, b in mine for n in range(a, b + 1)]
    await grounds.share(job_sharing=True)
    assert ids(await grounds.matched(pilot)) == [theirs[0][0]], "of the group's jobs the other's, too"


async def test_a_job_for_private_pilots_runs_on_no_generic_one_and_says_what_would_do(
    grounds: Grounds,
) -> None:
    job_id = (await grounds.world.submit({"pilot_types": ["private"]}, who=ANN)).ids[0][0]
    assert await grounds.matched(await grounds.world.add_pilot()) == []
    assert await grounds.sent() == [], "nobody wants private ones to be sent"
    told = await why(grounds.world, job_id, ANN)
    assert (told.code, "wms pilot start" in told.advice) == ("NO_PRIVATE_PILOT", True)
    (said,) = await grounds.world.look()
    assert (said.code, "ann@physics" in said.text) == ("NO_PRIVATE_PILOT", True)
    await grounds.order(ANN)
    await grounds.sent()
    assert (await why(grounds.world, job_id, ANN)).code == "NO_PILOT"


async def test_a_group_that_wants_its_own_is_sent_private_pilots_and_its_jobs_run_on_others_too(
    grounds: Grounds,
) -> None:
    await grounds.share(private_pilots=True)
    await grounds.world.submit({}, who=ANN)
    await grounds.world.submit({}, who=EVE)
    sent = {(each.owner, each.group): each for each in await grounds.sent()}
    assert sent.keys() == {("ann", "physics"), ("pilot_submitter", "pilot")}
    generic = sent["pilot_submitter", "pilot"]
    assert Right.GENERIC_PILOT in generic.rights
    assert len(await grounds.matched(generic)) == 2
    await grounds.world.submit({}, who=BOB)
    assert [(each.owner, each.group) for each in await grounds.sent()] == [], "the generic one is on its way"


async def test_a_whole_groups_pilots_are_ordered_where_it_shares_its_jobs(grounds: Grounds) -> None:
    refused = await grounds.order(ANN, group_wide=True)
    assert (refused.code, "does not share" in refused.message) == ("NOT_SHARED", True)
    await grounds.share(job_sharing=True)
    await grounds.order(ANN, group_wide=True)
    (pilot,) = await grounds.sent()
    assert (pilot.group, pilot.rights) == ("physics", frozenset())
    (job_id,) = await grounds.world.submitted()
    theirs = (await grounds.world.submit({}, who=BOB)).ids[0][0]
    assert sorted(ids(await grounds.matched(pilot))) == sorted([job_id, theirs])
    await grounds.share(job_sharing=False)
    await grounds.world.submit({}, who=BOB)
    assert await grounds.matched(pilot) == []
