"""What is HTCondor's own, against the fake: descriptions, refusals, jobs that are held."""

import json
import sys
from pathlib import Path

import pytest

from tests.contract.dispatch.grounds import ENDS, WAITS, FakeHTCondorGround, look, order, over
from wms.dispatch.agent_file import AgentFile
from wms.dispatch.htcondor import CondorPool, HTCondorDispatcher
from wms.dispatch.job_policy import JobPolicy
from wms.dispatch.port import Request


@pytest.fixture
def condor(tmp_path: Path) -> FakeHTCondorGround:
    return FakeHTCondorGround(tmp_path)


def queue_of(condor: FakeHTCondorGround) -> Path:
    return condor.place.parent / "bin" / "queue"


async def test_a_pilot_gets_what_it_asks_for(condor: FakeHTCondorGround) -> None:
    request = Request(
        cores=3, memory_mb=900, walltime_seconds=601, constraint="HasGpu", attributes={"+Project": '"x"'}
    )
    dispatcher = condor.dispatcher()
    (sent,) = await dispatcher.send([order(ENDS, request=request)])
    job = json.loads((queue_of(condor) / f"{sent.reference}.job").read_text())
    assert (job["request_cpus"], job["request_memory"], job["allowed_job_duration"]) == ("3", "900", "601")
    assert (job["requirements"], job["+Project"]) == ("HasGpu", '"x"')
    await over(condor, dispatcher, sent.pilot_id)


async def test_the_ad_of_a_batch_job_says_what_its_jobs_require(condor: FakeHTCondorGround) -> None:
    policy = JobPolicy(vo="lhcb", cpu_seconds=500, hosts='other.OS == "SLC"')
    dispatcher = condor.dispatcher()
    (sent,) = await dispatcher.send([order(ENDS, policy=policy)])
    job = json.loads((queue_of(condor) / f"{sent.reference}.job").read_text())
    said = {name: json.loads(value) for name, value in job.items() if name.startswith("+WmsPolicy")}
    assert said == {
        "+WmsPolicyVo": "lhcb",
        "+WmsPolicyCpuSeconds": "500",
        "+WmsPolicyHosts": 'other.OS == "SLC"',
    }
    await over(condor, dispatcher, sent.pilot_id)


async def test_what_the_pool_refuses_has_failed_and_the_others_go(condor: FakeHTCondorGround) -> None:
    dispatcher = condor.dispatcher()
    big, small = order(WAITS, request=Request(memory_mb=10**7)), order(ENDS)
    refused, sent = await dispatcher.send([big, small])
    assert (refused.state, sent.state) == ("Failed", "Submitted")
    assert "so much memory" in refused.reason
    assert not (condor.place / big.pilot_id / "token").exists()
    await over(condor, dispatcher, small.pilot_id)


@pytest.mark.parametrize("name", ["queue", "Executable", "+WmsPilot", "a\nqueue", "x y"])
async def test_what_a_request_may_not_say_is_refused(condor: FakeHTCondorGround, name: str) -> None:
    (refused,) = await condor.dispatcher().send([order(request=Request(attributes={name: "1"}))])
    assert refused.state == "Failed"
    assert "no command for a pilot" in refused.reason


async def test_a_value_of_several_lines_is_one(condor: FakeHTCondorGround) -> None:
    dispatcher = condor.dispatcher()
    request = Request(attributes={"nice_user": "true\nqueue\nexecutable = /bin/rm"})
    (sent,) = await dispatcher.send([order(ENDS, request=request)])
    job = json.loads((queue_of(condor) / f"{sent.reference}.job").read_text())
    assert job["executable"] == "/bin/sh"
    assert len(list(queue_of(condor).glob("*.job"))) == 1
    await over(condor, dispatcher, sent.pilot_id)


async def test_a_pilot_that_is_held_waits_and_says_why(condor: FakeHTCondorGround) -> None:
    pilot = order()
    ad = {"ClusterId": 9, "ProcId": 0, "JobStatus": 5, "HoldReason": "no space", "WmsPilot": pilot.pilot_id}
    (queue_of(condor) / "9.0.json").write_text(json.dumps(ad))
    held = await look(condor.dispatcher(), pilot.pilot_id)
    assert (held.state, held.reason, held.reference) == ("Waiting", "held: no space", "9.0")


async def test_a_file_with_the_agent_goes_with_each_pilot_and_to_no_shared_directory(
    condor: FakeHTCondorGround, tmp_path: Path
) -> None:
    file = tmp_path / "agent.pyz"
    file.write_text("import sys\nprint('carried', open(sys.argv[2]).read())\n")
    agent = AgentFile(file, sys.executable)
    dispatcher = HTCondorDispatcher(CondorPool(), condor.place, agent.argv, condor._environment, agent.path)
    pilot = order("a pilot's configuration")
    await dispatcher.send([pilot])
    assert (await over(condor, dispatcher, pilot.pilot_id)).state == "Done"
    (output,) = await dispatcher.outputs([pilot.pilot_id])
    assert output.text == "carried a pilot's configuration\n"
