"""Shares as they are shown."""

from tests.services.matcher.test_policy_refresh import shown
from tests.services.world import World, user

ADMIN = user("ada", "job_administrator")


OPERATOR = user("oz", "operator", vo="ops", group="ops")


async def test_groups_are_shown_with_what_waits_and_runs(the_world: World) -> None:
    await the_world.running(2)
    await the_world.submitted(3)
    await the_world.submit({}, who=user("bob"))
    await the_world.submit({}, who=user("cleo", group="cms", vo="cms"))
    line = (await shown(the_world))["lhcb", "physics"]
    assert (line.owners, line.waiting_jobs, line.running_jobs, line.source) == (2, 4, 2, "default")
    assert set(await shown(the_world)) == {("lhcb", "physics")}, "of one's own VO"
    assert set(await shown(the_world, OPERATOR)) == {("lhcb", "physics"), ("cms", "cms")}
