"""Whole agents as processes, under a real job manager and matcher: what users are promised of a job that runs."""

import asyncio
import json
import os
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from tests.services.job_agent.payload.processes import CAN_ISOLATE, DAEMON, STAY, alive, new_tag
from tests.services.job_agent.system import LEASE_SECONDS, Agent, Grid, grid
from tests.waiting import eventually
from wms.audit import audit
from wms.client import select
from wms.transfer import download


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Grid]:
    """Yield a system for all tests here; whatever they did to it, the auditor finds nothing in the end."""
    async with grid(tmp_path_factory.mktemp("grid")) as made:
        yield made
        await asyncio.gather(*(agent.stop() for agent in made.agents))

        async def sound() -> bool:
            report = await audit(made.url)
            assert report.ok, report.text(brief=True)
            return True

        await eventually(sound)


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def _stop_agents(place: Grid) -> AsyncIterator[None]:
    """Let no agent outlive its test, and no token be seen in what it logged."""
    yield
    await asyncio.gather(*(agent.stop() for agent in place.agents))
    for agent in place.agents:
        assert agent.token not in agent.log
        assert "Traceback" not in agent.log, agent.log[-3_000:]
    place.agents.clear()


def log_of(times: Path, name: str = "$WMS_JOB_ID") -> str:
    """Return shell code that notes when it begins and ends."""
    return f"echo b {name} $(date +%s.%N) >> {times}; {{}}; echo e {name} $(date +%s.%N) >> {times}"


def most_at_once(times: Path, weight: dict[str, int]) -> int:
    """Return how many processors were in use at once, by what the payloads noted themselves."""
    noted = sorted(
        (float(at), what, name) for what, name, at in map(str.split, times.read_text().splitlines())
    )
    now = most = 0
    for _, what, name in noted:
        now += weight[name] if what == "b" else -weight[name]
        most = max(most, now)
    return most


async def started(tag: str) -> list[int]:
    return await eventually(lambda: alive(tag))


async def gone(tag: str, within: float = 30.0) -> float:
    """Wait until no process has the tag, and return by the clock of the machine when that was seen."""
    await eventually(lambda: not alive(tag), within)
    return time.monotonic()


ISOLATIONS = [
    "none",
    pytest.param(
        "required", marks=pytest.mark.skipif(not CAN_ISOLATE, reason="no namespaces can be made here")
    ),
]


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_a_job_runs_from_its_submission_to_its_outputs(
    place: Grid, tmp_path: Path, isolation: str
) -> None:
    site = place.site()
    agent = await place.agent(site, isolation=isolation)
    (job,) = await place.submit(
        site, "sh", "-c", "echo hello; echo oops >&2; echo $HOME > out.dat", output_sandbox=("*.dat",)
    )
    await place.until([job], "Done")
    (attempt,) = await place.attempts(job)
    assert (attempt["outcome"], attempt["exit_code"], attempt["pilot_id"]) == ("done", 0, agent.pilot_id)
    assert (attempt["stdout_tail"], attempt["stderr_tail"]) == ("hello\n", "oops\n")
    await download(place.store, attempt["output_sha256"], tmp_path)
    assert (tmp_path / "stdout.txt").read_text() == "hello\n"
    assert (tmp_path / "out.dat").read_text().strip().endswith(f"{job}.1/work")
    jobs = agent.place / "jobs"
    # Its directories may be kept for the next job, as empty as they were made.
    await eventually(lambda: not [each for each in jobs.rglob("*") if not each.is_dir()])
    await eventually(lambda: {each.name for each in jobs.iterdir()} <= {".spare"})

    async def node() -> str:
        (pilot,) = await place.sql("select node from pilot where pilot_id = $1", agent.pilot_id)
        return str(pilot["node"])

    assert ["gpunumber", 0] in json.loads(await eventually(node)), "plans know where it runs"


async def test_a_program_that_fails_is_started_again_unless_its_exit_code_is_final(place: Grid) -> None:
    site = place.site()
    await place.agent(site)
    (again,) = await place.submit(site, "sh", "-c", "exit 3", retries=1, final_exit_codes=(4,))
    (final,) = await place.submit(site, "sh", "-c", "exit 4", retries=1, final_exit_codes=(4,))
    await place.until([again, final], "Failed")
    ends = [[each["exit_code"] for each in await place.attempts(job)] for job in (again, final)]
    assert ends == [[3, 3], [4]]


async def test_payloads_cannot_come_by_the_token(place: Grid, tmp_path: Path) -> None:
    site = place.site()
    agent = await place.agent(site)
    tag = new_tag()
    code = f"env; cat /proc/$PPID/environ /proc/$PPID/cmdline; exec sleep {tag}"
    (job,) = await place.submit(site, "sh", "-c", code)
    (pid,) = await started(tag)
    for process in (psutil.Process(pid), agent.shepherd(), psutil.Process(agent.pid)):
        assert agent.token not in " ".join(process.cmdline())
        assert agent.token not in str(process.environ())
    assert not (agent.place / "token").exists()
    # Closed memory: to whoever is not root, the kernel shows nothing of the process.
    assert Path(f"/proc/{agent.pid}/environ").stat().st_uid == 0
    await place.kill(job)
    await place.until([job], "Killed")
    (attempt,) = await place.attempts(job)
    assert agent.token not in attempt["stdout_tail"]
    assert "eyJ" not in attempt["stdout_tail"]


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_a_kill_reaches_the_payload_within_a_second(place: Grid, isolation: str) -> None:
    site = place.site()
    await place.agent(site, isolation=isolation)
    took = []
    # The machine may be busy with something else: the quickest of three counts.
    for _ in range(3):
        tag = new_tag()
        (job,) = await place.submit(site, "sleep", tag)
        await started(tag)
        order = asyncio.create_task(place.kill(job))
        sent = time.monotonic()
        took.append(await gone(tag) - sent)
        await order
        await place.until([job], "Killed")
        if took[-1] < 1.0:
            break
    assert min(took) < 1.0, took


@pytest.mark.skipif(not CAN_ISOLATE, reason="no namespaces can be made here")
async def test_jobs_in_containers_see_nothing_of_the_system(place: Grid) -> None:
    site, root = place.site(), place.system.layout.root
    agent = await place.agent(site, isolation="required", hidden=[str(root)])
    code = f"cat {root}/keys/*.pem {root}/client.toml {agent.place}/* /proc/{agent.pid}/environ; ls {root}"
    (job,) = await place.submit(site, "sh", "-c", f"{code}; echo x > {root}/mine; id -u")
    await place.until([job], "Done")
    (attempt,) = await place.attempts(job)
    assert attempt["stdout_tail"].split()[0] == "pilots", "the way to its own directory"
    assert attempt["stdout_tail"].split()[1] != "0"
    assert "PRIVATE KEY" not in attempt["stdout_tail"]
    assert attempt["stderr_tail"].count("No such file") == 3
    assert "namespaces" in agent.log


@pytest.mark.parametrize("isolation", ISOLATIONS)
async def test_a_running_job_can_be_looked_at(place: Grid, isolation: str) -> None:
    site = place.site()
    await place.agent(site, isolation=isolation)
    tag = new_tag()
    (job,) = await place.submit(site, "sh", "-c", f"echo one; echo two; exec sleep {tag}")
    await started(tag)

    async def seen() -> bool:
        shown = await place.client.peek(job)
        return shown.live and shown.text == "one\ntwo\n"

    await eventually(seen)
    await place.kill(job)
    await place.until([job], "Killed")


async def test_jobs_never_take_more_processors_than_there_are(place: Grid, tmp_path: Path) -> None:
    site, times = place.site(), tmp_path / "times"
    await place.agent(site, slots=4)
    work = log_of(times).format("sleep 0.2")
    wide = await place.submit(site, "sh", "-c", work, processors=2, array=6)
    narrow = await place.submit(site, "sh", "-c", work, array=8)
    await place.until(wide + narrow, "Done", 30)
    weight = {str(job): 2 for job in wide} | {str(job): 1 for job in narrow}
    assert 2 <= most_at_once(times, weight) <= 4


async def test_an_idle_agent_ends_by_itself(place: Grid) -> None:
    agent = await place.agent(place.site(), idle_seconds=0.5)
    assert await agent.ended() == 0
    ((state, reason),) = await place.sql(
        "select state, reason from pilot where pilot_id = $1", agent.pilot_id
    )
    assert (state, reason) == ("Done", "no job for 0.5 s")


async def test_a_pilot_for_one_job_ends_after_it(place: Grid) -> None:
    site = place.site()
    jobs = await place.submit(site, "true", array=3)
    agent = await place.agent(site, slots=1, most_jobs=1)
    assert await agent.ended() == 0
    states = list((await place.states(jobs)).values())
    assert sorted(states) == ["Done", "Waiting", "Waiting"]
    ((reason,),) = await place.sql("select reason from pilot where pilot_id = $1", agent.pilot_id)
    assert reason == "it has had its job"


async def test_told_to_end_it_gives_back_what_does_not_end_in_time(place: Grid, tmp_path: Path) -> None:
    site = place.site()
    agent = await place.agent(site, slots=2, grace_seconds=3.0)
    tag, go_on = new_tag(), tmp_path / "go on"
    (long,) = await place.submit(site, "sleep", tag)
    (short,) = await place.submit(site, "sh", "-c", f"until [ -e '{go_on}' ]; do sleep 0.05; done")
    await started(tag)
    await place.until([long, short], "Running")
    agent.signal(signal.SIGTERM)
    await eventually(lambda: "pilot drains" in agent.log)
    go_on.touch()
    assert await agent.ended() == 0
    assert alive(tag) == []
    await place.until([short], "Done")
    await place.until([long], "Waiting")
    (attempt,) = await place.attempts(long)
    assert (attempt["outcome"], attempt["reason"]) == ("lost", "PILOT_STOPPED")
    await place.kill(long)


async def test_told_twice_to_end_it_hurries(place: Grid) -> None:
    site = place.site()
    agent = await place.agent(site, grace_seconds=60.0)
    tag = new_tag()
    (job,) = await place.submit(site, "sh", "-c", f"trap '' TERM; sleep {tag}")
    await started(tag)
    agent.signal(signal.SIGTERM)
    await eventually(lambda: "pilot drains" in agent.log)
    assert alive(tag)
    agent.signal(signal.SIGTERM)
    await gone(tag, 2)
    assert await agent.ended() == 0
    await place.until([job], "Waiting")
    await place.kill(job)


async def test_a_killed_agent_leaves_nothing_and_its_job_is_run_again(place: Grid) -> None:
    site = place.site()
    agent = await place.agent(site)
    tag = new_tag()
    # It leaves daemons behind at its first attempt, and ends at its second.
    code = f"[ $WMS_EPOCH = 2 ] && exit; {sys.executable} -c '{DAEMON}{STAY}' {tag}"
    (job,) = await place.submit(site, "sh", "-c", code)
    await eventually(lambda: len(alive(tag)) == 2)
    await place.until([job], "Running")
    agent.signal(signal.SIGKILL)
    killed = time.monotonic()
    assert await gone(tag) - killed < 2.0
    await place.agent(site)
    await place.until([job], "Done", LEASE_SECONDS + 15)
    lost, done = await place.attempts(job)
    assert (lost["outcome"], lost["reason"], done["outcome"]) == ("lost", "LEASE_EXPIRED", "done")
    assert done["epoch"] == 2


async def test_a_stopped_agent_loses_its_jobs_before_another_gets_them(place: Grid, tmp_path: Path) -> None:
    site, times = place.site(), tmp_path / "times"
    agent = await place.agent(site)
    # One would run on for ever; the other ends by itself meanwhile, and its result comes too late.
    long = f"echo b $WMS_EPOCH $(date +%s.%N) >> {times}; [ $WMS_EPOCH = 2 ] || exec sleep {{}}"
    tag, late_tag = new_tag(), new_tag()
    (job,) = await place.submit(site, "sh", "-c", long.format(tag))
    (late,) = await place.submit(site, "sh", "-c", "[ $WMS_EPOCH = 2 ] || sleep 1", late_tag)
    await started(tag)
    await started(late_tag)
    agent.signal(signal.SIGSTOP)
    stopped = time.time()
    await eventually(lambda: not alive(tag), LEASE_SECONDS + 5)
    ended = time.time()
    assert ended - stopped < LEASE_SECONDS
    other = await place.agent(site)
    await place.until([job, late], "Done", LEASE_SECONDS + 15)
    (again,) = (float(line.split()[2]) for line in times.read_text().splitlines() if line.startswith("b 2"))
    first, second = await place.attempts(job)
    assert (first["outcome"], first["reason"], second["pilot_id"]) == (
        "lost",
        "LEASE_EXPIRED",
        other.pilot_id,
    )
    assert ended < first["ended_at"].timestamp() <= again
    agent.signal(signal.SIGCONT)
    await eventually(lambda: "ended with its lease" in agent.log and "result refused" in agent.log)
    for each in (job, late):
        assert [row["outcome"] for row in await place.attempts(each)] == ["lost", "done"]
        assert (await place.states([each]))[each] == "Done"


async def test_what_was_fetched_ahead_of_long_jobs_is_given_back(place: Grid) -> None:
    site = place.site()
    agent = await place.agent(site, slots=2)
    await place.until(await place.submit(site, "true", array=10), "Done")
    tag = new_tag()
    long = await place.submit(site, "sleep", tag, array=12, max_attempts=1)
    await eventually(lambda: len(alive(tag)) == 2)

    async def two_are_held() -> bool:
        states = list((await place.states(long)).values())
        return states.count("Running") == 2 and states.count("Waiting") == 10

    await eventually(two_are_held)
    assert len(alive(tag)) == 2
    # What it gave back is as if it had never had it: nothing was tried.
    attempts = await place.sql("select attempts from job where job_id = any ($1) and state = 'Waiting'", long)
    assert {row["attempts"] for row in attempts} == {0}
    await place.kill(*long)
    await place.until(long, "Killed")
    assert agent.log.count("given back") < 20


async def test_results_arrive_though_the_broker_dies(place: Grid, tmp_path: Path) -> None:
    site, times = place.site(), tmp_path / "times"
    agent = await place.agent(site)
    jobs = await place.submit(site, "sh", "-c", log_of(times).format("sleep 1"), array=12)
    await eventually(lambda: times.exists() and times.read_text().count("b ") >= 4)
    broker = place.system.broker
    assert broker is not None
    old = broker.pid
    os.kill(old or 0, signal.SIGKILL)
    await eventually(lambda: broker.pid not in (None, old))
    await place.until(jobs, "Done", 45)
    # Where the outage outlasted a lease its job was run again, as it must be.
    assert set(re.findall(r"(?m)^e (\d+)", times.read_text())) == set(map(str, jobs))
    outcomes = [
        row["outcome"] for row in await place.sql("select outcome from attempt where job_id = any ($1)", jobs)
    ]
    assert outcomes.count("done") == 12
    assert agent.log.count("link broken") == 1


async def test_results_arrive_though_postgres_hangs(place: Grid, tmp_path: Path) -> None:
    site, times = place.site(), tmp_path / "times"
    await place.agent(site)
    jobs = await place.submit(site, "sh", "-c", log_of(times).format("sleep 0.5"), array=4)
    await eventually(lambda: times.exists() and times.read_text().count("b ") == 4)
    postgres = place.system.postgres
    assert postgres is not None
    processes = [psutil.Process(postgres.pid), *psutil.Process(postgres.pid).children()]
    for process in processes:
        process.suspend()
    try:
        await eventually(lambda: times.read_text().count("e ") == 4)
        until = time.monotonic() + 1.5
        await eventually(lambda: time.monotonic() > until)
    finally:
        for process in processes:
            process.resume()
    await place.until(jobs, "Done")
    assert times.read_text().count("b ") == 4


async def test_a_payload_may_print_anything_and_give_its_files_any_name(place: Grid) -> None:
    site = place.site()
    await place.agent(site)
    code = "import os, sys; sys.stdout.buffer.write(b'a\\0\\xff\\x1bz'); os.symlink('/etc/passwd', b'o-\\xff\\n')"
    (job,) = await place.submit(site, sys.executable, "-c", code, output_sandbox=("o-*",))
    await place.until([job], "Done", LEASE_SECONDS - 1)
    (attempt,) = await place.attempts(job)
    assert attempt["stdout_tail"] == "a\ufffd\ufffd\x1bz"
    assert "o-" in attempt["reason_text"]


async def test_an_agent_without_its_token_says_so(place: Grid) -> None:
    agent = Agent(place, "tokenless", place.site(), 1, {"token_file": "/nowhere/token"})
    await agent.start()
    place.agents.append(agent)
    assert await agent.ended() == 2
    assert "cannot be taken from /nowhere/token" in agent.log


async def test_a_job_that_cannot_be_understood_by_the_node_fails_for_its_user(place: Grid) -> None:
    site = place.site()
    await place.agent(site)
    (missing,) = await place.submit(site, "no-such-program")
    await place.until([missing], "Failed")
    (attempt,) = await place.attempts(missing)
    assert (attempt["outcome"], attempt["reason"]) == ("failed", "NOT_STARTED")
    assert (await place.client.counts(select([str(missing)]))) == {"Failed": 1}


async def test_what_a_job_uses_over_time_is_told_while_it_runs_and_kept(place: Grid) -> None:
    site = place.site()
    await place.agent(site, slots=1)
    # Two points need some seconds, and the next renewal tells them.
    (job_id,) = await place.submit(site, "/bin/sh", "-c", "while sleep 0.02; do :; done", wall_time=14)

    async def told() -> bool:
        return any(len(each.usage_points) > 1 for each in (await place.client.show(job_id)).attempts)

    await eventually(told, within=60)
    await place.client.wait(select([str(job_id)]), timeout=60)
    (attempt,) = (await place.client.show(job_id)).attempts
    (first, *_, last) = attempt.usage_points
    assert first[0] <= last[0] <= (attempt.wall_seconds or 0) + 1
    assert 0 < last[1] / 1_000 <= (attempt.cpu_seconds or 0) + 0.5
    assert last[2] > 0


async def test_long_jobs_beside_tiny_ones_have_their_turns_and_none_is_given_back(place: Grid) -> None:
    """Three queues of equal weight with long jobs, and one with tiny ones, on two slots."""
    site = place.site()
    await place.agent(site, slots=2)
    tiny = await place.submit(site, "true", array=600)
    first = await place.submit(site, "sleep", "1.5", array=12, memory_mb=11)
    second = await place.submit(site, "sleep", "1.5", array=4, memory_mb=12)
    third = await place.submit(site, "sleep", "1.5", array=4, memory_mb=13)
    await place.until([*first, *second, *third], "Done", 90)
    rows = await place.sql(
        "select job_id, outcome, started_at from attempt where job_id = any ($1) order by started_at",
        [*tiny, *first, *second, *third],
    )
    assert {row["outcome"] for row in rows} <= {"done", None}, "none is given back"
    begun = [row["job_id"] for row in rows if row["job_id"] not in tiny]
    assert sorted(begun) == [*first, *second, *third], "each is given out once"
