"""The client against a job manager that runs as a process, a real broker and a real database."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.system.place import Place, owner, place
from tests.waiting import eventually
from wms.auth.keys import generate_keys, load_key
from wms.auth.token import Claims, mint
from wms.client import Client, ClientSettings, JobDescription, Rejected, State, Unavailable, select, sync
from wms.runtime import clock

__all__ = ["owner", "place"]

HELLO = JobDescription(executable="echo", arguments=("hello",), name="hello")


async def test_jobs_are_submitted_listed_shown_and_ordered_about(place: Place, owner: str) -> None:
    async with Client.connect(place.settings(owner)) as client:
        array = JobDescription(executable="echo", arguments=("{n}",), name="sim-{n}", array=1_500)
        submitted = await client.submit([HELLO, array])
        assert submitted.count == 1_501
        first = submitted.ids[0][0]
        assert await client.counts(submitted.selector()) == {"Waiting": 1_501}

        jobs = [job async for job in client.jobs(submitted.selector())]
        assert [job.job_id for job in jobs] == list(submitted.job_ids())
        assert (jobs[0].name, jobs[1].name) == ("hello", "sim-0")
        newest = [job async for job in client.jobs(select(everything=True), newest=True, limit=3)]
        assert [job.job_id for job in newest] == [first + 1_500, first + 1_499, first + 1_498]

        detail = await client.show(first)
        assert detail.description["executable"] == "echo"
        assert [line.state for line in detail.history][-1] == State.WAITING
        assert (await client.why(first)).code == "IMPOSSIBLE_NOW"
        assert (await client.peek(first)).text == ""
        assert [queue.waiting for queue in await client.queues()] == [1_501]
        assert await client.sites() == ()
        assert await client.pilots() == ()

        held = await client.hold(select(first), "let me see")
        assert (held.changed, held.unchanged_total) == (1, 0)
        again = await client.hold(select([first, first + 1]))
        assert (again.changed, again.unchanged[0].job_id) == (1, first)
        assert (await client.release(select(state="held"))).changed == 2
        killed = await client.kill(select(f"{first}-{first + 1_500}"))
        assert killed.changed == 1_501
        assert await client.wait(submitted.selector(), timeout=5) == {"Killed": 1_501}


async def test_a_second_submission_with_the_same_id_submits_nothing(place: Place, owner: str) -> None:
    async with Client.connect(place.settings(owner)) as client:
        jobs = [msgspec.structs.replace(HELLO, arguments=(str(n),)) for n in range(5_000)]
        one = await client.submit(jobs, id="monday")
        two = await client.submit(jobs, id="monday")
        assert one.count == 5_000
        assert (two.ids, one.repeated, two.repeated) == (one.ids, False, True)
        with pytest.raises(Rejected, match="ID_REUSED"):
            await client.submit([HELLO], id="monday")
        assert await client.counts(select(everything=True)) == {"Waiting": 5_000}


async def test_what_is_wrong_is_told_and_nothing_is_sent(place: Place, owner: str) -> None:
    async with Client.connect(place.settings(owner)) as client:
        wrong = msgspec.structs.replace(HELLO, cpu_time=-1, priority=99)
        with pytest.raises(Rejected, match=r"jobs\[1\].cpu_time(.|\n)*jobs\[1\].priority"):
            await client.submit([HELLO, wrong])
        with pytest.raises(Rejected, match="NO_JOBS"):
            await client.submit([])
        with pytest.raises(Rejected, match="NOTHING_SELECTED"):
            await client.kill(select())
        with pytest.raises(Rejected, match="NO_SUCH_JOB"):
            await client.show(10**9)
        assert await client.counts(select(everything=True)) == {}


async def test_jobs_of_others_are_not_there(place: Place, owner: str) -> None:
    async with (
        Client.connect(place.settings(owner)) as alice,
        Client.connect(place.settings(f"{owner}-bob")) as bob,
    ):
        job = (await alice.submit(HELLO)).ids[0][0]
        for ask in (bob.show, bob.why, bob.peek):
            with pytest.raises(Rejected, match="NO_SUCH_JOB"):
                await ask(job)
        refused = await bob.kill(select(job))
        assert (refused.changed, refused.unchanged[0].why) == (0, f"there is no job {job}")
        assert (await bob.kill(select(everything=True))).changed == 0
        assert [each async for each in bob.jobs(select(everything=True))] == []
        assert await alice.counts(select(job)) == {"Waiting": 1}


async def test_an_expired_token_is_refused_before_anything_is_sent(place: Place, owner: str) -> None:
    with pytest.raises(Rejected, match="TOKEN_EXPIRED"):
        async with Client.connect(place.settings(owner, lifetime=-60.0)):
            pass
    settings = place.settings(owner)
    async with Client.connect(settings) as client:
        place.token(owner, lifetime=-60.0)
        with pytest.raises(Rejected, match="your token expired at"):
            await client.submit(HELLO)
        place.token(owner)
        assert (await client.submit(HELLO)).count == 1


async def test_a_forged_token_is_refused_by_the_job_manager(place: Place, tmp_path: Path, owner: str) -> None:
    generate_keys(tmp_path / "forger")
    claims = Claims(kind="user", owner=owner, group="users", vo="atlas")
    settings = place.settings(owner)
    forged = mint(load_key(tmp_path / "forger" / "issuer.pem"), claims, 3600, clock.timestamp())
    Path(settings.auth.token_file).write_text(forged)
    # Nothing is done, and nobody is told: it names whom the forger likes.
    async with Client.connect(settings, timeout=2.0) as client:
        with pytest.raises(Unavailable, match="no answer within"):
            await client.submit(HELLO)
    async with Client.connect(place.settings(owner)) as client:
        assert not await client.counts(select(everything=True))


async def test_no_answer_in_time_is_said_and_asking_again_submits_nothing_twice(
    place: Place, owner: str
) -> None:
    async with Client.connect(place.settings(owner), timeout=1.0) as client:
        await place.stop()
        with pytest.raises(Unavailable, match="the id twice submits nothing twice"):
            await client.submit(HELLO, id="twice")
        await place.start()

        async def submitted() -> bool:
            try:
                return (await client.submit(HELLO, id="twice")).count == 1
            except Unavailable:
                return False

        await eventually(submitted, within=20)
        assert await client.counts(select(everything=True)) == {"Waiting": 1}


async def test_a_broker_that_lost_everything_is_found_again_and_asked_again(place: Place, owner: str) -> None:
    async with Client.connect(place.settings(owner)) as client:
        before = await client.submit(HELLO, id="before")
        await place.broker.kill()
        await place.broker.wait()
        under_way = asyncio.create_task(client.submit([HELLO, HELLO], id="during"))
        await place.broker.start()
        # The job manager ends when its cluster has become another, for its supervisor to begin it anew.
        assert place.process is not None
        await place.process.wait()
        await place.start()
        during = await under_way
        assert (await client.submit([HELLO, HELLO], id="during")).ids == during.ids
        assert (await client.submit(HELLO, id="before")).ids == before.ids
        assert await client.counts(select(everything=True)) == {"Waiting": 3}


async def test_files_go_to_the_store_and_come_back(place: Place, tmp_dir: Path, owner: str) -> None:
    (tmp_dir / "data").mkdir()
    (tmp_dir / "data" / "a.txt").write_text("a")
    async with Client.connect(place.settings(owner)) as client:
        ref = await client.upload([tmp_dir / "data"])
        assert await client.upload([tmp_dir / "data"]) == ref
        assert await client.upload({"a.txt": b"a"}) == await client.upload({"a.txt": b"a"})
        job = (await client.submit(msgspec.structs.replace(HELLO, input_sandbox=(ref,)))).ids[0][0]
        with pytest.raises(Rejected, match="asked to keep no files"):
            await client.output(job, tmp_dir / "out")


def test_the_synchronous_door_opens_to_the_same(sync_settings: ClientSettings) -> None:
    with sync.Client(sync_settings) as client:
        submitted = client.submit([HELLO] * 3)
        assert client.counts(submitted.selector()) == {"Waiting": 3}
        assert [job.job_id for job in client.jobs(submitted.selector())] == list(submitted.job_ids())
        with pytest.raises(sync.Rejected, match="NO_SUCH_JOB"):
            client.show(10**9)


@pytest.fixture
def sync_settings(place: Place, owner: str) -> ClientSettings:
    return place.settings(owner)
