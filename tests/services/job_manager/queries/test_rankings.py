"""Who may see the record of a brokered job, and what it says before the broker has begun."""

from tests.services.world import World, user
from wms.messages import queries, replies


async def test_before_the_broker_begins_there_is_nothing_to_show(the_world: World) -> None:
    (job_id,) = await the_world.submitted(preferences={})
    answer = await the_world.ask(user(), queries.ShowRanking(query_id="q", job_id=job_id))
    assert isinstance(answer, replies.JobRanking)
    assert (answer.state, answer.phase, answer.elements, answer.placements) == ("Checking", "", (), ())


async def test_a_job_that_pilots_take_from_its_queue_has_no_ranking(the_world: World) -> None:
    (job_id,) = await the_world.submitted()
    answer = await the_world.ask(user(), queries.ShowRanking(query_id="q", job_id=job_id))
    assert isinstance(answer, replies.Refused)
    assert answer.code == "NOT_BROKERED"


async def test_another_owners_record_is_not_shown(the_world: World) -> None:
    (job_id,) = await the_world.submitted(preferences={})
    answer = await the_world.ask(user("eve", group="other"), queries.ShowRanking(query_id="q", job_id=job_id))
    assert isinstance(answer, replies.Refused)


async def test_without_predictions_there_is_no_calibration(the_world: World) -> None:
    answer = await the_world.ask(user(), queries.ListPredictions(query_id="q"))
    assert answer.lines == ()
