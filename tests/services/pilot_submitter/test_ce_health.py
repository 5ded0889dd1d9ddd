"""An element that eats jobs gets none, is tried by canaries, and is trusted again; sites are banned, drained and tested."""

import msgspec
import pytest

from tests.services.elements import Place
from tests.services.world import user
from wms.job.reasons import Code
from wms.messages import events
from wms.messages.queries import ListSites, ShowSite, WhyJob


async def test_an_element_that_eats_jobs_gets_no_more_and_the_others_go_on(place: Place) -> None:
    await place.eaten()
    assert await place.states() == {"good": "healthy", "hole": "quarantined"}
    await place.world.submitted(3)
    assert await place.run("hole", 3) == []
    assert len(await place.run("good", 3)) == 3


async def test_why_it_is_avoided_is_told_to_whoever_asks(place: Place) -> None:
    await place.eaten()
    (job_id,) = await place.world.submitted(1, grid_ces=("hole",))
    await place.world.watch()
    said = await place.world.ask(user(), WhyJob(query_id="q", job_id=job_id))
    assert said.code == "ALL_AVOIDED"
    why = "avoid: quarantined by pilot_submitter: it eats jobs: 4 of 4 attempts failed"
    assert f"A/hole: {why}" in said.summary
    told_of = next(each for each in said.elements if each.ce == "hole")
    assert told_of.limits == ()
    sites = await place.world.ask(user(), ListSites(query_id="q"))
    (notice,) = next(each for each in sites.sites if each.ce == "hole").notices
    assert notice == told_of.avoid, "whoever is asked"
    assert notice.startswith(why)
    detail = await place.world.ask(user(), ShowSite(query_id="q", site="A", ce="hole"))
    assert [(each.before, each.event, each.state) for each in detail.moves] == [
        ("healthy", "eat", "quarantined")
    ]
    facts = [msgspec.json.decode(each, type=dict) for each in place.world.take(events.TOPIC)]
    (told,) = [each for each in facts if each["type"] == "element-state"]
    assert (told["ce"], told["state"], told["said_by"]) == ("hole", "quarantined", "pilot_submitter")
    assert [each.code for each in await place.world.look()] == ["ALL_AVOIDED"]


@pytest.mark.parametrize(
    "code", [Code.URL_REFUSED, Code.FILE_UNAVAILABLE, Code.FILE_CORRUPT, Code.OUTPUT_FAILED]
)
async def test_files_that_cannot_come_or_go_blame_no_element(place: Place, code: Code) -> None:
    """The same files fail quickly here and, being others', do well elsewhere: by that the element would be quarantined."""
    await place.world.submitted(8)
    assert len(await place.run("good", 4)) == 4
    assert len(await place.run("hole", 4, code)) == 4
    await place.look()
    assert await place.states() == {"good": "healthy", "hole": "healthy"}


async def test_one_users_broken_jobs_quarantine_nothing(place: Place) -> None:
    await place.world.submitted(20, name="broken")
    for ce in ("good", "hole"):
        assert len(await place.run(ce, 8, Code.EXIT_CODE)) == 8
    await place.look()
    assert await place.states() == {"good": "healthy", "hole": "healthy"}
