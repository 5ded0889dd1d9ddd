"""What is Slurm's own: what pilots ask for, what the cluster refuses, what becomes of those it has forgotten."""

import stat
from pathlib import Path

import pytest

from tests.contract.dispatch.grounds import ENDS, FAILS, SHELL, WAITS, SlurmGround, look, order, over, seen
from tests.middleware import Sites
from tests.waiting import eventually
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.reduce import sketch
from wms.dispatch.job_policy import JobPolicy
from wms.dispatch.mapping import HostMapping
from wms.dispatch.port import Request
from wms.provisioning.host_requirements import host_requirements_of

pytestmark = pytest.mark.testbed


async def test_a_pilot_gets_what_it_asks_for(slurm: SlurmGround) -> None:
    request = Request(
        cores=3,
        memory_mb=2_500,
        walltime_seconds=601,
        constraint="avx512",
        gres="gpu:1",
        attributes={"comment": "a word of the site's own"},
    )
    (sent,) = await slurm.dispatcher(partition="short").send([order(WAITS, request=request)])
    job = slurm.sites.run("alpha", "scontrol", "-o", "show", "job", str(sent.reference))
    for word in ("cpu=3", "mem=2500M", "TimeLimit=00:11:00", "Features=avx512", "gpu:1", "Partition=short"):
        assert word in job
    assert "Comment=a word of the site's own" in job
    assert "Requeue=0" in job, "a second life would have no token"


async def test_the_comment_of_a_batch_job_says_what_its_jobs_require(slurm: SlurmGround) -> None:
    pilot = order(WAITS, policy=JobPolicy(vo="lhcb", owner_groups=("user",), cpu_seconds=500))
    (sent,) = await slurm.dispatcher().send([pilot])
    job = slurm.sites.run("alpha", "scontrol", "-o", "show", "job", str(sent.reference))
    assert "Comment=wms vo=lhcb; owner_groups=user; cpu_seconds=500" in job


async def test_what_the_cluster_refuses_has_failed_and_says_why_and_the_others_go(slurm: SlurmGround) -> None:
    dispatcher = slurm.dispatcher()
    big, small = order(WAITS, request=Request(memory_mb=10**6)), order(ENDS)
    refused, sent = await dispatcher.send([big, small])
    assert refused.state == "Failed"
    assert "not available" in refused.reason
    assert sent.state == "Submitted"
    assert not (slurm.place / big.pilot_id / "token").exists()


@pytest.mark.parametrize("name", ["job-name", "wrap", "Partition", "x; rm", "requeue"])
async def test_what_a_request_may_not_say_is_refused_before_slurm_hears_of_it(
    slurm: SlurmGround, name: str
) -> None:
    (refused,) = await slurm.dispatcher().send([order(request=Request(attributes={name: "x"}))])
    assert refused.state == "Failed"
    assert name in refused.reason


async def test_a_pilot_waits_and_says_what_for(slurm: SlurmGround) -> None:
    dispatcher = slurm.dispatcher()
    pilot = order(WAITS, request=Request(attributes={"begin": "now+1hour"}))
    await dispatcher.send([pilot])
    waiting = await seen(slurm, dispatcher, pilot.pilot_id, "Waiting")
    assert waiting.reason == "BeginTime"
    await dispatcher.cancel([pilot.pilot_id])
    assert (await over(slurm, dispatcher, pilot.pilot_id)).state == "Aborted"


async def test_how_pilots_ended_is_known_after_slurm_has_forgotten_them(
    tmp_path: Path, testbed: Sites
) -> None:
    ground = SlurmGround(tmp_path, testbed, "beta")
    dispatcher = ground.dispatcher()
    well, ill = order(ENDS), order(FAILS)
    await dispatcher.send([well, ill])

    async def forgotten() -> bool:
        names = testbed.run("beta", "squeue", "-h", "-t", "all", "-o", "%j").split()
        return not {well.pilot_id, ill.pilot_id} & set(names)

    await eventually(forgotten, within=60)
    assert (await look(dispatcher, well.pilot_id)).state == "Done"
    ended = await look(dispatcher, ill.pilot_id)
    assert (ended.state, ended.reason) == ("Failed", "exit code 3: no broker answers")


async def test_what_is_secret_is_ours_alone_and_not_in_slurms_records(slurm: SlurmGround) -> None:
    pilot = order(WAITS)
    (sent,) = await slurm.dispatcher().send([pilot])
    for name in ("token", "config.toml"):
        assert stat.S_IMODE((slurm.place / pilot.pilot_id / name).stat().st_mode) == 0o600
    script = slurm.sites.run("alpha", "scontrol", "write", "batch_script", str(sent.reference), "-")
    assert pilot.pilot_id in script
    assert pilot.token not in script


async def test_an_agent_that_is_not_there_has_failed(slurm: SlurmGround) -> None:
    dispatcher = slurm.dispatcher(["/nowhere/python", *SHELL[1:]])
    pilot = order()
    await dispatcher.send([pilot])
    ended = await over(slurm, dispatcher, pilot.pilot_id)
    assert ended.state == "Failed"
    assert "/nowhere/python" in ended.reason


def fake_sacct(place: Path, program: str) -> Path:
    """Put a fake of `sacct`, for which these clusters have no database, where it is found before the real one."""
    tools = place / "tools"
    tools.mkdir()
    (tools / "sacct").write_text(f"#!/bin/sh\n{program}\n")
    (tools / "sacct").chmod(0o755)
    return tools


@pytest.mark.parametrize(
    ("accounted", "state"),
    [("COMPLETED", "Done"), ("NODE_FAIL", "Failed"), ("CANCELLED by 0", "Aborted"), ("RUNNING", "Running")],
)
async def test_what_left_nothing_is_looked_up_in_slurms_accounts(
    slurm: SlurmGround, accounted: str, state: str
) -> None:
    pilot = order().pilot_id
    dispatcher = slurm.dispatcher(tools=fake_sacct(slurm.place, f"echo '7|{accounted}|{pilot}'"))
    found = await look(dispatcher, pilot)
    assert (found.state, found.reference) == (state, "7")


async def test_while_the_accounts_cannot_be_read_nothing_is_said_of_what_is_only_there(
    slurm: SlurmGround,
) -> None:
    tools = fake_sacct(slurm.place, "echo 'Unable to connect to database' >&2; exit 1")
    assert await slurm.dispatcher(tools=tools).follow([order().pilot_id]) == []


async def test_the_host_that_a_job_requires_is_asked_of_slurm_and_the_pilot_runs_there(
    slurm: SlurmGround,
) -> None:
    software = "GlueHostApplicationSoftwareRunTimeEnvironment"
    wanted = Expression.parse(
        f'other.GlueHostMainMemoryRAMSize >= 200 && member("avx512", other.{software}) && other.Wall > 60'
    )
    mapping = HostMapping("slurm", {software: "--constraint={value}"})
    told = Ad.of({"GlueHostMainMemoryRAMSize": 100, software: [], "Wall": 120})
    asked = mapping.ask(Request(), host_requirements_of(wanted, sketch(told, mapping.forwarded)).bounds)
    assert not asked.unasked
    dispatcher = slurm.dispatcher(partition="main")
    pilot = order(ENDS, request=asked.request)
    (sent,) = await dispatcher.send([pilot])
    job = slurm.sites.run("alpha", "scontrol", "-o", "show", "job", str(sent.reference))
    assert "MinMemoryNode=200M" in job
    assert "Features=avx512" in job
    assert (await over(slurm, dispatcher, pilot.pilot_id)).state == "Done"
