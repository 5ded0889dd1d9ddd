"""What every dispatcher does, whatever its middleware."""

import os
from collections.abc import Iterator

import psutil
import pytest

from tests.contract.dispatch.grounds import (
    ENDS,
    FAILS,
    TALKS,
    TELLS_PLACE,
    TELLS_POLICY,
    TELLS_TOKEN,
    WAITS,
    Ground,
    look,
    order,
    over,
    seen,
)
from tests.waiting import eventually
from wms.dispatch.job_policy import JobPolicy
from wms.dispatch.port import OUTPUT_LIMIT, Dispatcher
from wms.errors import Unavailable
from wms.ids import PilotId


async def test_a_pilot_runs_until_it_is_cancelled_and_drains_then(ground: Ground) -> None:
    dispatcher, pilot = ground.dispatcher(), order(WAITS)
    (sent,) = await dispatcher.send([pilot])
    assert (sent.pilot_id, sent.state) == (pilot.pilot_id, "Submitted")
    assert sent.reference
    await seen(ground, dispatcher, pilot.pilot_id, "Running")
    await printed(ground, dispatcher, pilot.pilot_id, "began")
    await dispatcher.cancel([pilot.pilot_id])
    await over(ground, dispatcher, pilot.pilot_id)
    # A batch system may have a word to say in between, and may call a pilot ended that still drains.
    assert (await printed(ground, dispatcher, pilot.pilot_id, "drained")).startswith("began\n")


async def test_a_pilot_that_ends_well_is_done(ground: Ground) -> None:
    dispatcher, pilot = ground.dispatcher(), order(ENDS)
    await dispatcher.send([pilot])
    assert (await over(ground, dispatcher, pilot.pilot_id)).state == "Done"
    assert await output(dispatcher, pilot.pilot_id) == "all is well\n"


async def test_a_pilot_that_fails_says_why_by_its_last_line(ground: Ground) -> None:
    dispatcher, pilot = ground.dispatcher(), order(FAILS)
    await dispatcher.send([pilot])
    ended = await over(ground, dispatcher, pilot.pilot_id)
    assert ended.state == "Failed"
    assert ended.reason.endswith(": no broker answers")
    assert await output(dispatcher, pilot.pilot_id) == "first\nno broker answers\n"


async def test_who_comes_after_a_crash_finds_the_pilots_by_their_names(ground: Ground) -> None:
    waits, ends = order(WAITS), order(ENDS)
    dispatcher = ground.dispatcher()
    await dispatcher.send([waits, ends])
    await over(ground, dispatcher, ends.pilot_id)
    successor = ground.dispatcher()
    assert (await look(successor, waits.pilot_id)).state in ("Submitted", "Waiting", "Running")
    assert await output(successor, ends.pilot_id) == "all is well\n"
    await successor.cancel([waits.pilot_id])
    await over(ground, successor, waits.pilot_id)


async def test_a_pilot_that_was_never_sent_is_aborted(ground: Ground) -> None:
    pilot = order()
    sighting = await look(ground.dispatcher(), pilot.pilot_id)
    assert (sighting.pilot_id, sighting.state) == (pilot.pilot_id, "Aborted")
    assert "no such" in sighting.reason


async def test_of_many_each_is_followed(ground: Ground) -> None:
    dispatcher = ground.dispatcher()
    pilots = [order(ENDS) for _ in range(12)]
    sent = await dispatcher.send(pilots)
    assert [each.pilot_id for each in sent] == [each.pilot_id for each in pilots]
    assert len({each.reference for each in sent}) == 12
    ids = [each.pilot_id for each in pilots]

    async def all_done() -> bool:
        sightings = await dispatcher.follow(ids)
        assert {each.pilot_id for each in sightings} == set(ids)
        return all(each.state == "Done" for each in sightings)

    await eventually(all_done, within=ground.patience)
    assert {each.pilot_id for each in await dispatcher.outputs(ids)} == set(ids)


async def test_the_same_pilot_is_not_sent_twice(ground: Ground) -> None:
    dispatcher, pilot = ground.dispatcher(), order(WAITS)
    await dispatcher.send([pilot])
    (again,) = await dispatcher.send([pilot])
    assert again.state == "Failed"
    await seen(ground, dispatcher, pilot.pilot_id, "Running")


async def test_a_token_reaches_the_pilot_and_is_seen_nowhere_else(ground: Ground) -> None:
    dispatcher, pilot = ground.dispatcher(), order(TELLS_TOKEN)
    await dispatcher.send([pilot])
    text = await printed(ground, dispatcher, pilot.pilot_id, "began")
    assert text == f"600\n{pilot.token}began\n"
    for process in everybody():
        assert pilot.token not in process


def everybody() -> Iterator[str]:
    """Yield the command lines and environments of all processes but this one."""
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid():
                yield f"{process.cmdline()} {process.environ()}"
        except (OSError, psutil.Error):
            continue


async def test_a_pilot_is_told_who_it_is_and_has_a_place_of_its_own(ground: Ground) -> None:
    dispatcher, pilot = ground.dispatcher(), order(TELLS_PLACE)
    await dispatcher.send([pilot])
    await over(ground, dispatcher, pilot.pilot_id)
    name, _, place = (await output(dispatcher, pilot.pilot_id)).strip().partition(" in ")
    assert name == pilot.pilot_id
    assert place.startswith("/")
    assert pilot.pilot_id in place


POLICY = JobPolicy(
    vo="lhcb",
    owner_groups=("user", "prod"),
    cores=1,
    cpu_seconds=500,
    hosts='other.OS == "SLC" && other.CPUs > 1',
)


async def test_what_its_jobs_require_is_seen_in_the_batch_job(ground: Ground) -> None:
    dispatcher, pilot = ground.dispatcher(), order(TELLS_POLICY, policy=POLICY)
    await dispatcher.send([pilot])
    await over(ground, dispatcher, pilot.pilot_id)
    assert (await output(dispatcher, pilot.pilot_id)).splitlines() == [
        "WMS_POLICY_CORES=1",
        "WMS_POLICY_CPU_SECONDS=500",
        'WMS_POLICY_HOSTS=other.OS == "SLC" && other.CPUs > 1',
        "WMS_POLICY_OWNER_GROUPS=user,prod",
        "WMS_POLICY_VO=lhcb",
    ]


async def test_of_what_a_pilot_printed_the_end_is_fetched(ground: Ground) -> None:
    dispatcher, pilot = ground.dispatcher(), order(TALKS)
    await dispatcher.send([pilot])
    await over(ground, dispatcher, pilot.pilot_id)
    text = await output(dispatcher, pilot.pilot_id)
    assert len(text.encode()) == OUTPUT_LIMIT
    assert text.endswith("the end\n")


async def test_of_a_pilot_that_was_never_sent_there_is_no_output_and_nothing_to_end(ground: Ground) -> None:
    dispatcher, nobody = ground.dispatcher(), order().pilot_id
    assert await dispatcher.outputs([nobody]) == []
    await dispatcher.cancel([nobody])
    await dispatcher.forget([nobody])
    assert (await dispatcher.follow([]), await dispatcher.send([])) == ([], [])


async def test_who_comes_later_is_listed_all_pilots_that_live(ground: Ground) -> None:
    waits, ends = order(WAITS), order(ENDS)
    dispatcher = ground.dispatcher()
    await dispatcher.send([waits, ends])
    await over(ground, dispatcher, ends.pilot_id)
    successor = ground.dispatcher()
    assert {waits.pilot_id, ends.pilot_id} & set(await successor.alive()) == {waits.pilot_id}
    await successor.cancel([waits.pilot_id])
    await over(ground, successor, waits.pilot_id)

    async def gone() -> bool:
        return waits.pilot_id not in await successor.alive()

    await eventually(gone, within=ground.patience)


async def test_to_cancel_one_that_has_ended_changes_nothing(ground: Ground) -> None:
    dispatcher, pilot = ground.dispatcher(), order(ENDS)
    await dispatcher.send([pilot])
    await over(ground, dispatcher, pilot.pilot_id)
    await dispatcher.cancel([pilot.pilot_id])
    assert await output(dispatcher, pilot.pilot_id) == "all is well\n"


async def test_a_middleware_that_is_not_there_is_unavailable_and_no_pilot_is_taken_for_dead(
    ground: Ground,
) -> None:
    dispatcher = ground.unreachable()
    if dispatcher is None:
        return  # there is no machine without processes
    pilot = order()
    with pytest.raises(Unavailable):
        await dispatcher.follow([pilot.pilot_id])
    with pytest.raises(Unavailable):
        await dispatcher.send([pilot])


async def output(dispatcher: Dispatcher, name: str) -> str:
    return "".join(each.text for each in await dispatcher.outputs([PilotId(name)]))


async def printed(ground: Ground, dispatcher: Dispatcher, name: str, line: str) -> str:
    """Wait until a pilot has printed a line; return all it printed."""

    async def there() -> str:
        text = await output(dispatcher, name)
        return text if f"{line}\n" in text else ""

    return await eventually(there, within=ground.patience)
