"""Requests become messages to services that run, and their answers responses."""

from tests.services.gateway.conftest import Door

HELLO = {"executable": "echo", "arguments": ["hello"], "name": "hello"}


async def test_a_job_is_submitted_listed_shown_and_ordered_about(door: Door, owner: str) -> None:
    status, taken = await door.ask(owner, "POST", "/jobs", HELLO)
    assert status == 201
    ((first, last),) = taken["ids"]
    assert first == last

    status, page = await door.ask(owner, "GET", "/jobs?everything=true&state=waiting,held")
    assert (status, [job["job_id"] for job in page["jobs"]]) == (200, [first])
    status, job = await door.ask(owner, "GET", f"/jobs/{first}")
    assert (status, job["description"]["executable"]) == (200, "echo")
    status, moves = await door.ask(owner, "GET", f"/jobs/{first}/timeline")
    assert [move["state"] for move in moves] == ["Received", "Waiting"]
    assert (await door.ask(owner, "GET", f"/jobs/{first}/attempts")) == (200, [])
    status, why = await door.ask(owner, "GET", f"/jobs/{first}/why")
    assert (status, why["code"]) == (200, "IMPOSSIBLE_NOW")
    status, log = await door.ask(owner, "GET", f"/jobs/{first}/logs?stream=stderr")
    assert (status, log["text"]) == (200, "")

    order = {"action": "hold", "selection": {"jobs": str(first)}, "reason": "let me see"}
    assert (await door.ask(owner, "POST", "/orders", order))[1]["changed"] == 1
    edit = {"action": "edit", "selection": {"jobs": str(first)}, "changes": {"priority": 7}}
    assert (await door.ask(owner, "POST", "/orders", edit))[1]["changed"] == 1
    status, job = await door.ask(owner, "GET", f"/jobs/{first}")
    assert (job["job"]["state"], job["description"]["priority"]) == ("Held", 7)
    status, counts = await door.ask(owner, "GET", "/jobs/counts?everything=true")
    assert counts["counts"] == {"Held": 1}


async def test_a_list_goes_on_where_its_page_ended(door: Door, owner: str) -> None:
    _, taken = await door.ask(owner, "POST", "/jobs", [HELLO | {"name": f"n{n}"} for n in range(5)])
    (first, _), *_ = taken["ids"]
    seen: list[int] = []
    after = ""
    while True:
        _, page = await door.ask(owner, "GET", f"/jobs?everything=true&limit=2{after}")
        seen += [job["job_id"] for job in page["jobs"]]
        if page["after"] is None:
            break
        after = f"&after={page['after']}"
    assert seen == list(range(first, first + 5))


async def test_the_same_idempotency_key_takes_effect_once(door: Door, owner: str) -> None:
    headers = door.headers(owner, **{"Idempotency-Key": "monday"})
    for repeated in (False, True):
        async with door.session.post(f"{door.url}/api/v1/jobs", json=HELLO, headers=headers) as answer:
            assert (await answer.json())["repeated"] is repeated
    _, counts = await door.ask(owner, "GET", "/jobs/counts?everything=true")
    assert counts["counts"] == {"Waiting": 1}
    _, page = await door.ask(owner, "GET", "/jobs?submission=monday")
    assert len(page["jobs"]) == 1


async def test_lists_of_places_and_rules_are_answered(door: Door, owner: str) -> None:
    for path in (
        "queues",
        "sites",
        "plans",
        "pilots",
        "pilot-orders",
        "shares",
        "limits",
        "reservations",
        "sweeps",
    ):
        status, answer = await door.ask(owner, "GET", f"/{path}")
        assert (path, status) == (path, 200), answer
    assert (await door.ask(owner, "GET", "/predictions?by=site"))[0] == 200


async def test_what_only_operators_may_is_refused_to_others(door: Door, owner: str) -> None:
    status, problem = await door.ask(owner, "POST", "/sites/cern/orders", {"action": "ban"})
    assert (status, problem["code"]) == (403, "NOT_ALLOWED")
    status, problem = await door.ask(owner, "PUT", "/shares/atlas/users", {"job_share": 5})
    assert (status, problem["code"]) == (403, "NOT_ALLOWED")


async def test_a_job_of_another_does_not_exist(door: Door, owner: str) -> None:
    _, taken = await door.ask(owner, "POST", "/jobs", HELLO)
    job_id = taken["ids"][0][0]
    for path in ("", "/why", "/logs", "/attempts", "/timeline", "/ranking"):
        status, problem = await door.ask(f"{owner}x", "GET", f"/jobs/{job_id}{path}")
        assert (status, problem["code"]) == (404, "NO_SUCH_JOB")
