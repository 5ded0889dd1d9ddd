"""Jobs that start after others: held until these have ended, whoever ends them how, and told what became of them."""

import asyncio
from typing import Any

import msgspec
import pytest

from services.job_manager import dependencies
from tests.services.world import World, pilot, result, user
from wms.audit import audit
from wms.bus.consumer import Delivery
from wms.db import dependency, job, sandbox, share
from wms.db.database import Transaction
from wms.ids import CommandId
from wms.job.reasons import Code
from wms.matching.shares import GroupShare
from wms.messages import replies
from wms.messages.commands import Selector, Submit
from wms.messages.queries import ListJobs, ShowJob, WhyJob

SHA = "0f" * 32


OTHER_SHA = "1e" * 32


@pytest.fixture(autouse=True)
async def _audited(the_world: World) -> Any:
    """Whatever a test did, the auditor finds nothing."""
    yield
    report = await audit(the_world.url)
    assert report.ok, report.text(brief=True)


async def end(
    the_world: World, *held: Any, outcome: str = "done", code: Code = Code.DONE, **more: Any
) -> None:
    """Report that these jobs ended so, and have the dependencies looked at."""
    await the_world.report(finish=tuple(result(each, outcome, code, **more) for each in held))
    await the_world.settle()


async def shown(the_world: World, job_id: int) -> tuple[str, str]:
    """Return state and reason as a list shows them, of a job in a block, too."""
    query = ListJobs(query_id="q", selector=Selector(ids=((job_id, job_id),)))
    (line,) = (await the_world.ask(user(), query)).jobs
    return str(line.state), str(line.reason)


async def why(the_world: World, job_id: int) -> str:
    return str((await the_world.ask(user(), WhyJob(query_id="q", job_id=job_id))).summary)


async def described(the_world: World, job_id: int) -> dict[str, Any]:
    detail = await the_world.ask(user(), ShowJob(query_id="q", job_id=job_id))
    found: dict[str, Any] = detail.description
    return found


async def dependency_rows(the_world: World) -> int:
    return len(await the_world.sql("select from dependency"))


async def test_a_job_starts_once_all_of_its_predecessors_are_done(the_world: World) -> None:
    first, second = await the_world.running(2)
    (after,) = await the_world.submitted(after=[first[0], str(second[0])])
    assert await shown(the_world, after) == ("Held", "DEPENDENCY")
    assert await the_world.match() == []
    await end(the_world, first)
    assert await shown(the_world, after) == ("Held", "DEPENDENCY")
    assert f"it waits for job {second[0]} (Running" in await why(the_world, after)
    await end(the_world, second)
    ((matched, _),) = await the_world.match()
    assert matched == after
    assert await dependency_rows(the_world) == 0
    assert (await the_world.reasons(after))[1:4] == ["QUEUED", "DEPENDENCY", "DEPENDENCY_MET"]


async def test_predecessors_that_are_done_already_hold_nothing(the_world: World) -> None:
    (held,) = await the_world.running()
    await end(the_world, held)
    (after,) = await the_world.submitted(after=[held[0]])
    assert await the_world.history(after) == ["Received", "Waiting"]
    assert await dependency_rows(the_world) == 0


async def test_a_failed_predecessor_is_named_and_its_second_try_starts_the_job(the_world: World) -> None:
    first, second = await the_world.running(2)
    (after,) = await the_world.submitted(after=[f"{first[0]}-{second[0]}"])
    # The one that is looked at last fails first.
    await end(the_world, second, outcome="failed", code=Code.EXIT_CODE, exit_code=3)
    assert await shown(the_world, after) == ("Held", "DEPENDENCY_FAILED")
    assert f"job {second[0]} is Failed; it starts after jobs {first[0]}-{second[0]}" in await why(
        the_world, after
    )
    await end(the_world, first)
    assert await shown(the_world, after) == ("Held", "DEPENDENCY_FAILED")
    await the_world.order("reschedule", second[0])
    await the_world.settle()
    assert await shown(the_world, after) == ("Held", "DEPENDENCY")
    (again,) = await the_world.match()
    assert again[0] == second[0]
    await the_world.report(accept=(again,), start=(again,))
    await end(the_world, again)
    assert await the_world.state(after) == "Waiting"


async def test_a_predecessor_that_was_done_counts_as_done_after_its_removal(the_world: World) -> None:
    first, second = await the_world.running(2)
    (after,) = await the_world.submitted(after=[first[0], second[0]])
    await the_world.report(finish=(result(second),))
    await the_world.order("remove", second[0])
    await the_world.settle()
    assert await shown(the_world, after) == ("Held", "DEPENDENCY")
    await end(the_world, first)
    assert await the_world.state(after) == "Waiting"
    (later,) = await the_world.submitted(after=[second[0]])
    assert await the_world.state(later) == "Waiting"


async def test_any_end_is_enough_where_the_user_says_so(the_world: World) -> None:
    first, second, third = await the_world.running(3)
    (after,) = await the_world.submitted(after=[first[0]], after_any=[second[0], third[0]])
    await end(the_world, second, outcome="failed", code=Code.EXIT_CODE)
    await the_world.order("kill", third[0])
    await end(the_world, third, outcome="killed", code=Code.KILLED_BY_USER)
    assert await shown(the_world, after) == ("Held", "DEPENDENCY")
    await end(the_world, first)
    assert await the_world.state(after) == "Waiting"


async def test_a_million_jobs_wait_as_one_row_and_start_as_one_block(the_world: World) -> None:
    (held,) = await the_world.running()
    reply = await the_world.submit({"after": [held[0]], "array": 1_000_000})
    ((low, high),) = reply.ids
    assert await dependency_rows(the_world) == 1
    assert [each["state"] for each in await the_world.sql("select state from block")] == ["Held"]
    assert await shown(the_world, high) == ("Held", "DEPENDENCY")
    await end(the_world, held)
    assert [each["state"] for each in await the_world.sql("select state from block")] == ["Waiting"]
    assert len(await the_world.sql("select from job")) == 1
    assert await dependency_rows(the_world) == 0
    ((matched, _),) = await the_world.match()
    assert low <= matched < low + 100


async def test_a_job_after_an_array_starts_with_the_arrays_last_job(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependency, "WINDOW", 3)
    sweep = await the_world.swept(12)
    (after,) = await the_world.submitted(after=[f"{sweep[0]}-{sweep[-1]}"])
    held = await the_world.match(slots=8) + await the_world.match(pilot("p-2"), slots=4)
    assert len(held) == 12
    await the_world.report(accept=tuple(held[:8]), start=tuple(held[:8]))
    await the_world.report(pilot("p-2"), accept=tuple(held[8:]), start=tuple(held[8:]))
    ordered = sorted(held)
    await the_world.report(pilot("p-2"), finish=tuple(result(each) for each in held[8:]))
    await end(the_world, *held[1:8])
    assert await shown(the_world, after) == ("Held", "DEPENDENCY")
    (left,) = await the_world.sql("select lower(pending) as low from dependency")
    assert left["low"] == held[0][0]
    await end(the_world, held[0])
    # More of them than are looked at in one go.
    for _ in ordered:
        await the_world.settle()
    assert await the_world.state(after) == "Waiting"


async def test_parts_of_an_array_that_were_killed_hold_what_comes_after_it(the_world: World) -> None:
    sweep = await the_world.swept(1_000)
    ok, bad = await the_world.submitted(2)
    (after,) = await the_world.submitted(after=[f"{sweep[0]}-{sweep[-1]}"], after_any=[ok])
    (whatever,) = await the_world.submitted(after_any=[f"{sweep[0]}-{sweep[9]}"], after=[bad])
    await the_world.order("kill", *sweep[:10])
    await the_world.settle()
    assert await shown(the_world, after) == ("Held", "DEPENDENCY_FAILED")
    assert f"job {sweep[0]} is Killed" in await why(the_world, after)
    assert await shown(the_world, whatever) == ("Held", "DEPENDENCY")
    words = await why(the_world, after)
    assert f"it waits for jobs {sweep[0]}-{sweep[9]} (Killed: KILLED_BY_USER)" in words
    assert f", jobs {sweep[10]}-{sweep[-1]} (Waiting: QUEUED)" in words


async def refused(the_world: World, *descriptions: Any, who: Any = None) -> replies.Refused:
    reply = await the_world.submit(*descriptions, who=who)
    assert isinstance(reply, replies.Refused), reply
    return reply


async def test_others_jobs_and_those_that_never_were_are_unknown(the_world: World) -> None:
    (mine,) = await the_world.submitted()
    bob = user("bob")
    for after in ([mine], [mine + 10_000], [f"{mine}-{mine + 1}"]):
        reply = await refused(the_world, {"after": after}, who=bob)
        assert reply.code == "NO_SUCH_JOB"
    # Of itself, whose id it may guess: it is not there yet.
    assert (await refused(the_world, {"after": [mine + 1]})).code == "NO_SUCH_JOB"
    assert await dependency_rows(the_world) == 0
    assert len(await the_world.sql("select from job")) == 1
    async with the_world.db.transaction() as tx:
        await share.set_share(tx, ("lhcb", "physics"), GroupShare(job_sharing=True), "oz")
    reply = await the_world.submit({"after": [mine]}, who=bob)
    assert isinstance(reply, replies.Submitted)
    # Who may only look may wait for it, and not have its outputs.
    monitor = user("eve", "job_monitor", group="other")
    assert isinstance(await the_world.submit({"after": [mine]}, who=monitor), replies.Submitted)
    assert (await refused(the_world, {"input_from": [mine]}, who=monitor)).code == "NO_SUCH_JOB"


async def test_what_can_never_be_done_is_refused_at_once(the_world: World) -> None:
    killed, removed = await the_world.submitted(2)
    await the_world.order("kill", killed)
    await the_world.order("remove", removed)
    for each in (killed, removed):
        reply = await refused(the_world, {"after": [each]})
        assert reply.code == "NEVER_DONE"
        assert isinstance(await the_world.submit({"after_any": [each]}), replies.Submitted)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ([0], "is no job's id"),
        (["x"], "neither a job's id"),
        (["9-7"], "ends before it begins"),
        ([["a"]], "must be a job's id"),
        (["1-1000001"], "more than 1,000,000"),
        ([f"{2 * n}" for n in range(1, 1_002)], "entries"),
        ([",".join(str(2 * n) for n in range(1, 1_500))], "separate ids"),
    ],
)
async def test_nonsense_is_refused_with_its_place(the_world: World, after: Any, words: str) -> None:
    reply = await refused(the_world, {"after": after})
    assert reply.code == "DESCRIPTION_INVALID"
    assert any(words in each and "after" in each for each in reply.details), reply.details


async def test_an_end_during_the_submission_is_not_missed(the_world: World) -> None:
    """Whichever of the two commits first: what waits is looked at, not told."""
    first, second = await the_world.running(2)
    for held in (first, second):
        submit = {"executable": "true", "after": [held[0]]}
        message = Submit(
            command_id=CommandId(f"c-{held[0]}"), jobs=(msgspec.Raw(msgspec.json.encode(submit)),)
        )
        async with the_world.db.transaction() as tx:
            await the_world._commands.handle(tx, [Delivery(user(), message)])
            if held is first:
                # The end commits first, after the submission has seen the job run.
                await asyncio.wait_for(the_world.report(finish=(result(held),)), 20)
        if held is second:
            await the_world.report(finish=(result(held),))
        await the_world.settle()
        (reply,) = the_world.replies("ann")
        assert isinstance(reply, replies.Submitted)
        assert await the_world.state(reply.ids[0][0]) == "Waiting"


async def test_many_lookers_and_a_crash_let_each_job_go_once(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = await the_world.running(4)
    waiting = [(await the_world.submitted(2, after=[each[0]])) for each in held]
    await the_world.report(finish=tuple(result(each) for each in held))
    whole = job.move

    async def dies(*args: Any) -> None:
        await whole(*args)
        raise RuntimeError("killed after the moves")

    monkeypatch.setattr(job, "move", dies)
    await the_world.settle()
    monkeypatch.undo()
    assert await dependency_rows(the_world) == 4
    lookers = [dependencies.Dependencies(the_world.db, lambda: 0.0) for _ in range(4)]
    await asyncio.gather(*(each.look() for each in lookers))
    for each in [job_id for jobs in waiting for job_id in jobs]:
        assert await the_world.history(each) == ["Received", "Waiting", "Held", "Waiting"]
    assert await dependency_rows(the_world) == 0


async def test_a_dependency_that_cannot_be_settled_keeps_no_other_waiting(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = await the_world.running(2)
    (spoilt,), (fine,) = [await the_world.submitted(1, after=[each[0]]) for each in held]
    await the_world.report(finish=tuple(result(each) for each in held))
    whole = dependencies.settle

    async def spoils(tx: Transaction, number: int) -> None:
        if number == 1:
            raise ValueError("a fault")
        await whole(tx, number)

    monkeypatch.setattr(dependencies, "settle", spoils)
    await the_world.settle()
    assert [await the_world.state(each) for each in (spoilt, fine)] == ["Held", "Waiting"]


async def test_a_repeated_submission_waits_once(the_world: World) -> None:
    (held,) = await the_world.running()
    first = await the_world.submit({"after": [held[0]]}, command_id="mine")
    again = await the_world.submit({"after": [held[0]]}, command_id="mine")
    assert again.repeated
    assert again.ids == first.ids
    assert await dependency_rows(the_world) == 1


async def test_dependencies_whose_jobs_are_gone_are_forgotten(the_world: World) -> None:
    (first,) = await the_world.submitted()
    (one,) = await the_world.submitted(after=[first])
    sweep = await the_world.swept(10, after=[first])
    await the_world.order("kill", one, *sweep[1:])
    await the_world.dependencies.forget_idle()
    assert await dependency_rows(the_world) == 1
    await the_world.order("remove", sweep[0])
    await the_world.dependencies.forget_idle()
    assert await dependency_rows(the_world) == 0


def archive(held: Any, sha: str = SHA) -> dict[str, Any]:
    return {"sha256": sha, "size": 12, "directory": str(held[0])}


@pytest.mark.parametrize("array", [None, 100_000])
async def test_outputs_of_predecessors_are_inputs_in_their_order(the_world: World, array: int | None) -> None:
    first, second = await the_world.running(2)
    mine = {"sha256": OTHER_SHA, "size": 3}
    more = {"array": array} if array else {}
    reply = await the_world.submit({"input_from": [first[0], second[0]], "input_sandbox": [mine], **more})
    after = reply.ids[0][0]
    await end(the_world, first, output_sha256=SHA, output_bytes=12)
    assert (await described(the_world, after))["input_sandbox"] == [mine]
    await end(the_world, second)
    assert (await described(the_world, after))["input_sandbox"] == [mine, archive(first)]
    ((matched, _),) = await the_world.match()
    assert after <= matched < after + 100


async def test_outputs_that_are_there_already_come_with_the_first_look(the_world: World) -> None:
    (held,) = await the_world.running()
    await end(the_world, held, output_sha256=SHA, output_bytes=12)
    (after,) = await the_world.submitted(input_from=[held[0]])
    await the_world.settle()
    assert await the_world.state(after) == "Waiting"
    assert (await described(the_world, after))["input_sandbox"] == [archive(held)]


async def test_outputs_are_kept_while_somebody_is_to_get_them(the_world: World) -> None:
    first, second = await the_world.running(2)
    (after,) = await the_world.submitted(input_from=[first[0]], after=[second[0]])
    await end(the_world, first, output_sha256=SHA, output_bytes=12)
    await the_world.order("remove", first[0])

    async def referenced() -> set[str]:
        async with the_world.db.transaction() as tx:
            return await sandbox.referenced(tx)

    assert await referenced() == {SHA}
    await end(the_world, second)
    assert await the_world.state(after) == "Waiting"
    assert await referenced() == {SHA}
    await the_world.order("remove", after)
    assert await referenced() == set()


async def test_a_job_made_from_an_old_one_gets_each_output_once(the_world: World) -> None:
    (held,) = await the_world.running()
    await end(the_world, held, output_sha256=SHA, output_bytes=12)
    (after,) = await the_world.submitted(input_from=[held[0]])
    await the_world.settle()
    again = {
        name: value for name, value in (await described(the_world, after)).items() if name != "executable"
    }
    (second,) = await the_world.submitted(**again)
    await the_world.settle()
    assert (await described(the_world, second))["input_sandbox"] == [archive(held)]


def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each statement is added from now on."""
    said: list[str] = []
    for name in ("fetch", "fetchrow", "fetchval", "execute"):
        whole = getattr(Transaction, name)

        async def listens(tx: Transaction, query: str, *args: Any, whole: Any = whole) -> Any:
            said.append(query)
            return await whole(tx, query, *args)

        monkeypatch.setattr(Transaction, name, listens)
    return said


async def test_jobs_without_predecessors_ask_nothing_of_dependencies(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = statements(monkeypatch)
    held = await the_world.running(3)
    sweep = await the_world.swept(5)
    await the_world.report(finish=tuple(result(each) for each in held))
    await the_world.order("kill", sweep[2])
    assert said
    assert not [each for each in said if "dependency" in each]


async def test_many_jobs_of_one_message_with_predecessors_of_their_own_cost_few_statements(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = await the_world.submitted(200)
    said = statements(monkeypatch)
    reply = await the_world.submit(*({"after": [each]} for each in layer))
    monkeypatch.undo()
    assert len(said) < 40
    ((low, high),) = reply.ids
    assert await dependency_rows(the_world) == 200
    assert f"it waits for job {layer[-1]} " in await why(the_world, high)
    assert f"starts after job {layer[0]};" in await why(the_world, low)


async def test_one_message_names_no_more_predecessors_than_can_be_looked_at(the_world: World) -> None:
    first = (await the_world.submitted())[0]
    many = [{"after": [f"{first}-{first + 900_000 + n}"]} for n in range(3)]
    assert (await refused(the_world, *many)).code == "TOO_MANY_PREDECESSORS"


async def test_a_round_goes_on_where_the_last_one_stopped(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = await the_world.running(3)
    waiting = [(await the_world.submitted(after=[each[0]]))[0] for each in held]
    await the_world.report(finish=tuple(result(each) for each in held))
    monkeypatch.setattr(dependencies, "LOOK_SECONDS", -1.0)
    for done in (1, 2, 3):
        assert await the_world.dependencies.look()
        states = [await the_world.state(each) for each in waiting]
        assert states == ["Waiting"] * done + ["Held"] * (3 - done)
    assert not await the_world.dependencies.look()


async def test_a_batch_of_rows_goes_on_in_the_next_transaction(
    the_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dependencies, "BATCH", 2)
    (held,) = await the_world.running()
    waiting = await the_world.submitted(5, after=[held[0]])
    await end(the_world, held, outcome="failed", code=Code.EXIT_CODE)
    for _ in range(3):
        await the_world.settle()
    assert {await shown(the_world, each) for each in waiting} == {("Held", "DEPENDENCY_FAILED")}
    await the_world.order("reschedule", held[0])
    (again,) = await the_world.match()
    await the_world.report(accept=(again,), start=(again,))
    await end(the_world, again)
    for _ in range(3):
        await the_world.settle()
    assert {await the_world.state(each) for each in waiting} == {"Waiting"}
    assert await dependency_rows(the_world) == 0
