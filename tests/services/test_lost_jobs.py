"""Jobs whose pilot dies, whose node vanishes, whose batch system forgets, and whose clock jumps: lease, reason, another try."""

from typing import Any

import pytest

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, EndpointSettings
from services.pilot_submitter.pilot_tracking import PilotTracking
from tests.services.world import World, user
from wms.cli.timeline import told
from wms.dispatch.port import PilotSighting
from wms.ids import AttemptId, PilotId
from wms.job.reasons import Code
from wms.lease import STEP_SECONDS
from wms.messages import replies
from wms.messages.queries import ShowJob, ShowPilot
from wms.messages.reports import Result

SILENT_SECONDS = 60.0


class FakeMiddleware:
    """Stands for a batch system that says of our one pilot what a test tells it to."""

    def __init__(self, **said: Any) -> None:
        self.said = PilotSighting(pilot_id=PilotId("p-1"), **said)

    async def follow(self, _: object) -> list[PilotSighting]:
        return [self.said]


async def follow(world: World, **said: Any) -> None:
    """Let the pilot submitter hear what an element says of its pilot."""
    endpoint = CeEndpoint(("A", "ce"), FakeMiddleware(**said), lambda: 0.0, EndpointSettings(kind="local"))  # type: ignore[arg-type] # no more is asked of it
    endpoints = CeEndpoints(endpoint.dispatcher, lambda: 0.0, [endpoint], local_sites=["*"])
    await PilotTracking(world.db, endpoints, silent_seconds=SILENT_SECONDS).follow()


async def lease_seconds(world: World) -> float:
    (row,) = await world.sql("select extract(epoch from expires_at - now())::float8 as left from lease")
    return row["left"]  # type: ignore[no-any-return]


async def silence(world: World) -> None:
    """Let the pilot have been silent for long enough."""
    await world.sql("update pilot set seen_at = now() - make_interval(secs => $1)", SILENT_SECONDS + 1)


async def shown(world: World, held: AttemptId) -> replies.JobDetail:
    detail = await world.ask(user(), ShowJob(query_id="q", job_id=held[0]))
    assert isinstance(detail, replies.JobDetail)
    return detail


async def lost(world: World, held: AttemptId) -> replies.Attempt:
    """Return how the only attempt ended, once its lease has run out; the job waits again."""
    await world.expire(held[0])
    detail = await shown(world, held)
    assert detail.job.state == "Waiting"
    (attempt,) = detail.attempts
    assert attempt.outcome == "lost"
    return attempt


async def test_what_a_pilot_held_that_was_seen_to_die_is_given_back_at_once_with_the_elements_words(
    the_world: World,
) -> None:
    (held,) = await the_world.running()
    assert await lease_seconds(the_world) > 60
    await follow(the_world, state="Failed", reason="out_of_memory: Killed", reference="4711")
    assert await lease_seconds(the_world) <= 5.0
    attempt = await lost(the_world, held)
    assert attempt.reason == Code.PILOT_DIED
    assert "pilot p-1 at A/ce was not heard of; it spoke last at" in (attempt.reason_text or "")
    assert (attempt.reason_text or "").endswith("Failed: out_of_memory: Killed")


@pytest.mark.parametrize("cause", [Code.NODE_LOST, Code.PILOT_FORGOTTEN])
async def test_of_a_pilot_that_is_only_lost_from_sight_the_lease_runs_its_time(
    the_world: World, cause: Any
) -> None:
    (held,) = await the_world.running()
    await silence(the_world)
    await follow(the_world, state="Failed", reason="gone", lost=cause)
    assert await lease_seconds(the_world) > 60, "it may work on where nobody sees it"
    attempt = await lost(the_world, held)
    assert attempt.reason == cause


async def test_a_pilot_that_speaks_is_believed_rather_than_its_element(the_world: World) -> None:
    await the_world.running()
    await follow(the_world, state="Aborted", lost=Code.PILOT_FORGOTTEN)
    (row,) = await the_world.sql("select state, cause from pilot")
    assert (row["state"], row["cause"]) == ("Running", None)


async def test_a_pilot_that_was_lost_from_sight_and_speaks_is_back_with_what_it_holds(
    the_world: World,
) -> None:
    (held,) = await the_world.running()
    await silence(the_world)
    await follow(the_world, state="Failed", lost=Code.NODE_LOST)
    (row,) = await the_world.sql("select state, ended_at from pilot")
    assert (row["state"], row["ended_at"] is None) == ("Failed", False)
    answer = await the_world.report(renew=(held,), busy=1)
    assert answer.granted == (held,)
    (row,) = await the_world.sql("select state, ended_at, cause from pilot")
    assert (row["state"], row["ended_at"], row["cause"]) == ("Running", None, None)


async def test_a_pilot_that_was_seen_to_end_stays_ended_whatever_comes_late(the_world: World) -> None:
    await the_world.running()
    await follow(the_world, state="Failed", reason="exit code 1")
    await the_world.report(busy=1)
    (row,) = await the_world.sql("select state, cause from pilot")
    assert (row["state"], row["cause"]) == ("Failed", "PILOT_DIED")


async def test_what_a_lost_pilot_reports_later_has_no_effect_and_is_not_taken_for_recorded(
    the_world: World,
) -> None:
    (held,) = await the_world.running()
    await silence(the_world)
    await follow(the_world, state="Failed", lost=Code.NODE_LOST)
    await lost(the_world, held)
    result = Result(job_id=held[0], epoch=held[1], outcome="done", code=Code.DONE, exit_code=0)
    answer = await the_world.report(finish=(result,))
    assert (answer.lost, answer.recorded) == ((held,), ())
    assert (await shown(the_world, held)).job.state == "Waiting"


async def test_a_silent_pilot_of_which_nobody_says_anything_loses_its_job_by_the_lease_alone(
    the_world: World,
) -> None:
    (held,) = await the_world.running()
    assert (await lost(the_world, held)).reason == Code.LEASE_EXPIRED


async def test_the_timeline_tells_who_saw_what_in_the_order_of_time(the_world: World) -> None:
    (held,) = await the_world.running()
    await follow(the_world, state="Failed", reason="node_fail", reference="4711")
    before = told(await shown(the_world, held))
    assert [each.who for each in before if "unless it is renewed" in each.what] == ["job manager"]
    await lost(the_world, held)
    entries = told(await shown(the_world, held))
    assert [each.at for each in entries] == sorted(each.at for each in entries)
    words = [(each.who, each.what) for each in entries]
    for who, what in (
        ("pilot submitter", "sent pilot p-1 to local A/ce, there called 4711"),
        ("matcher", "Matched  OFFERED: p-1"),
        ("pilot p-1", "spoke for the first time"),
        ("pilot p-1", "took the job under a lease at A/ce"),
        ("job agent", "Running  STARTED"),
        ("local A/ce", "said of pilot p-1: Failed: node_fail  PILOT_DIED"),
    ):
        assert (who, what) in words, words
    assert any(what.startswith("the attempt ended, lost  PILOT_DIED: pilot p-1 at A/ce") for _, what in words)


# --- clocks that jump -------------------------------------------------------------------------------


async def clock_is_set(world: World, seconds: float) -> None:
    """Let the database's clock be set between two sweeps: every time that it wrote down is that much further off now."""
    await world._leases.sweep()
    await world.sql("update lease set expires_at = expires_at - make_interval(secs => $1)", seconds)
    world.clock_set += seconds
    await world._leases.sweep()


@pytest.mark.parametrize("hours", [1, 24, -1, -24])
async def test_leases_go_on_for_what_they_had_left_when_the_databases_clock_is_set(
    the_world: World, hours: int
) -> None:
    (held,) = await the_world.running()
    before = await lease_seconds(the_world)
    await clock_is_set(the_world, hours * 3_600.0)
    assert before - 60.0 < await lease_seconds(the_world) <= before + STEP_SECONDS
    assert (await the_world.report(renew=(held,), busy=1)).granted == (held,)


async def test_a_lease_that_had_run_out_before_the_clock_was_set_is_taken_back(the_world: World) -> None:
    (held,) = await the_world.running()
    await the_world._leases.sweep()
    await the_world.sql("update lease set expires_at = now() - interval '2 h'")
    the_world.clock_set += 3_600.0
    await the_world._leases.sweep()
    assert (await shown(the_world, held)).job.state == "Waiting"


async def test_a_step_that_two_instances_notice_moves_leases_once(the_world: World) -> None:
    await the_world.running()
    other = type(the_world._leases)(the_world.db, the_world.terms, the_world._leases._monotonic)
    await other.sweep()
    before = await lease_seconds(the_world)
    await clock_is_set(the_world, 3_600.0)
    await other.sweep()
    assert before - 60.0 < await lease_seconds(the_world) <= before + STEP_SECONDS


# --- what pilots printed ----------------------------------------------------------------------------


async def test_a_pilot_is_shown_with_its_output_to_its_vo_and_to_operators_only(the_world: World) -> None:
    await the_world.running()
    await follow(the_world, state="Failed", reason="exit code 1")
    await the_world.sql("update pilot set output = 'my last words'")
    query = ShowPilot(query_id="q", pilot_id="p-1")
    for who in (user(), user("joe", "operator", vo="other")):
        detail = await the_world.ask(who, query)
        assert (detail.output, detail.cause, detail.word) == (
            "my last words",
            "PILOT_DIED",
            "Failed: exit code 1",
        )
    refused = await the_world.ask(user("eve", vo="other"), query)
    unknown = await the_world.ask(user(), ShowPilot(query_id="q", pilot_id="p-2"))
    assert (refused.code, unknown.code) == ("NO_SUCH_PILOT", "NO_SUCH_PILOT")
