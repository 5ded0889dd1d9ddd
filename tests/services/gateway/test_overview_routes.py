"""Reports through the gateway: who asks, how things go, and what was used."""

import pytest

from tests.services.gateway.conftest import Door


async def test_one_is_told_who_one_is(door: Door, owner: str) -> None:
    status, answer = await door.ask(owner, "GET", "/whoami")
    assert (status, answer["owner"], answer["owner_group"], answer["vo"]) == (200, owner, "users", "atlas")


async def test_the_progress_of_a_group_is_told(door: Door, owner: str) -> None:
    jobs = [
        {"executable": "echo", "job_group": "night"},
        {"executable": "echo", "job_group": "night", "array": 5},
    ]
    await door.ask(owner, "POST", "/jobs", jobs)
    status, answer = await door.ask(owner, "GET", "/progress?limit=10")
    assert status == 200
    ((group, counts),) = [(line["job_group"], line["counts"]) for line in answer["lines"]]
    assert (group, counts) == ("night", {"Waiting": 6})


async def test_the_overview_has_the_services(door: Door, owner: str) -> None:
    status, answer = await door.ask(owner, "GET", "/overview")
    assert status == 200
    assert [(line["service"], line["instances"]) for line in answer["services"]] == [("job_manager", 1)]


async def test_usage_is_summed_up_by_what_is_asked_for(door: Door, owner: str) -> None:
    status, answer = await door.ask(owner, "GET", "/usage?by=owner,day&since=2026-01-01T00:00:00Z")
    assert (status, answer["by"], answer["lines"]) == (200, ["owner", "day"], [])


@pytest.mark.parametrize("query", ["by=colour&since=2026-01-01T00:00:00Z", "since=2026-01-01T00:00:00", ""])
async def test_a_faulty_question_about_usage_is_refused(door: Door, owner: str, query: str) -> None:
    status, problem = await door.ask(owner, "GET", f"/usage?{query}")
    assert (status, problem["code"]) == (422, "BAD_PARAMETER")
