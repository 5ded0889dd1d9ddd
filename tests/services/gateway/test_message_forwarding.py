"""Messages of the clients' protocol are passed on, under the user's own token alone."""

from tests.services.gateway.conftest import Door

HELLO = {"executable": "echo", "arguments": ["hello"]}


async def test_a_command_and_a_query_are_passed_on(door: Door, owner: str) -> None:
    submit = {"type": "submit", "command_id": "one", "jobs": [HELLO]}
    status, taken = await door.ask(owner, "POST", "/commands", submit)
    assert (status, taken["type"], taken["command_id"]) == (200, "submitted", "one")
    status, again = await door.ask(owner, "POST", "/commands", submit)
    assert (again["ids"], again["repeated"]) == (taken["ids"], True)
    show = {"type": "show-job", "query_id": "two", "job_id": taken["ids"][0][0]}
    status, job = await door.ask(owner, "POST", "/queries?in_order=false", show)
    assert (status, job["type"], job["query_id"]) == (200, "job-detail", "two")


async def test_whatever_client_a_message_names_the_answer_comes_here(door: Door, owner: str) -> None:
    count = {"type": "count-jobs", "query_id": "x", "client": "another", "selector": {"everything": True}}
    status, answer = await door.ask(owner, "POST", "/queries", count)
    assert (status, answer["counts"]) == (200, {})
    assert answer["client"] != "another"


async def test_a_query_is_no_command(door: Door, owner: str) -> None:
    status, problem = await door.ask(
        owner, "POST", "/commands", {"type": "show-job", "query_id": "x", "job_id": 1}
    )
    assert (status, problem["code"]) == (422, "MESSAGE_INVALID")


async def test_what_the_service_refuses_is_refused_here(door: Door, owner: str) -> None:
    status, problem = await door.ask(
        owner, "POST", "/queries", {"type": "show-job", "query_id": "x", "job_id": 10**9}
    )
    assert (status, problem["code"]) == (404, "NO_SUCH_JOB")
