"""What is PBS's and LSF's own, against fakes of their tools: options, names, refusals, how jobs are told to have ended."""

import json
import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from tests.contract.dispatch.grounds import ENDS, FakeLsfGround, FakePbsGround, look, order, over
from wms.dispatch import lsf, pbs
from wms.dispatch.batch import BatchJob
from wms.dispatch.policy import JobPolicy
from wms.dispatch.port import Dispatcher, PilotRequest, Request
from wms.errors import Unavailable
from wms.job.reasons import Code

POLICY = JobPolicy(vo="lhcb", owner_groups=("user", "prod"), cpu_seconds=500, hosts='other.OS == "SLC"')
ME = pwd.getpwuid(os.geteuid()).pw_name


async def options_of(
    ground: FakePbsGround | FakeLsfGround, dispatcher: Dispatcher, pilot: PilotRequest
) -> dict[str, Any]:
    (sent,) = await dispatcher.send([pilot])
    assert sent.state == "Submitted", sent.reason
    await over(ground, dispatcher, pilot.pilot_id)
    number = str(sent.reference).partition(".")[0]
    options: dict[str, Any] = json.loads((ground.queue / f"{number}.json").read_text())["options"]
    assert pilot.token not in str(options) + (ground.queue / f"{number}.sh").read_text()
    return options


@pytest.mark.parametrize(
    ("flavour", "asked"),
    [
        ("torque", "nodes=1:ppn=3:ib,mem=900mb,walltime=601,file=5gb"),
        ("pbspro", "select=1:ncpus=3:mem=900mb:ib,walltime=601,file=5gb"),
    ],
)
async def test_a_pbs_job_gets_what_it_asks_for_and_shows_what_its_jobs_require(
    tmp_path: Path, flavour: pbs.Flavour, asked: str
) -> None:
    ground = FakePbsGround(tmp_path)
    attributes = {"file": "5gb", "-W": "group_list=grid"}
    request = Request(cores=3, memory_mb=900, walltime_seconds=601, constraint="ib", attributes=attributes)
    pilot = order(ENDS, f"p-of-a-longer-name-{flavour}", request, POLICY)
    dispatcher = ground.dispatcher(pbs.PbsServer(flavour, queue="long", account="grid", name_length=15))
    options = await options_of(ground, dispatcher, pilot)
    assert (options["-l"], options["-q"], options["-A"], options["-W"]) == (
        asked,
        "long",
        "grid",
        "group_list=grid",
    )
    assert len(options["-N"]) == 15 < len(pilot.pilot_id), "it was found again by its variables all the same"
    assert options["-v"].split(",") == [
        f"WMS_PILOT={pilot.pilot_id}",
        "WMS_POLICY_VO=lhcb",
        "WMS_POLICY_OWNER_GROUPS=user+prod",
        "WMS_POLICY_CPU_SECONDS=500",
    ]


async def test_an_lsf_job_gets_what_it_asks_for_and_shows_what_its_jobs_require(tmp_path: Path) -> None:
    ground = FakeLsfGround(tmp_path)
    request = Request(
        cores=3, memory_mb=900, walltime_seconds=601, constraint="type==any && avx512", gres="scratch=5",
        attributes={"gpu": "num=1", "order": "-slots"},
    )  # fmt: skip
    dispatcher = ground.dispatcher(lsf.LsfCluster(queue="long", project="grid"))
    options = await options_of(ground, dispatcher, order(ENDS, request=request, policy=POLICY))
    assert (options["-n"], options["-W"], options["-gpu"]) == ("3", "11", "num=1")
    assert (options["-q"], options["-P"]) == ("long", "grid")
    assert options["-R"] == (
        "select[type==any && avx512] rusage[mem=900MB:scratch=5] span[hosts=1] order[-slots]"
    )
    assert options["-Jd"] == 'wms vo=lhcb; owner_groups=user,prod; cpu_seconds=500; hosts=other.OS == "SLC"'


@pytest.mark.parametrize(
    ("ground", "attributes"),
    [
        (FakePbsGround, {"-N": "x"}),
        (FakePbsGround, {"-W": "stagein=/etc/passwd@here:x"}),
        (FakePbsGround, {"nodes": "99"}),
        (FakePbsGround, {"file": "5gb,nodes=99"}),
        (FakePbsGround, {"file": "$(id)"}),
        (FakePbsGround, {"-p": "1; id"}),
        (FakeLsfGround, {"J": "x"}),
        (FakeLsfGround, {"K": "x"}),
        (FakeLsfGround, {"order": "a] rusage[mem=1"}),
        (FakeLsfGround, {"p": "1\n2"}),
    ],
)
async def test_what_a_request_may_not_say_is_refused_before_the_tools_hear_of_it(
    tmp_path: Path, ground: type[FakePbsGround | FakeLsfGround], attributes: dict[str, str]
) -> None:
    pilot = order(request=Request(attributes=attributes))
    (refused,) = await ground(tmp_path).dispatcher().send([pilot])
    assert refused.state == "Failed"
    assert refused.reason.startswith("not sent: ")


@pytest.mark.parametrize("ground", [FakePbsGround, FakeLsfGround])
async def test_what_is_refused_has_failed_and_says_why_and_the_others_go(
    tmp_path: Path, ground: type[FakePbsGround | FakeLsfGround]
) -> None:
    it = ground(tmp_path)
    big, small = order(request=Request(memory_mb=1_000_000)), order(ENDS)
    refused, sent = await it.dispatcher().send([big, small])
    assert (refused.state, sent.state) == ("Failed", "Submitted")
    assert refused.reason == "refused: Job violates the limits of the queue: so much memory"
    assert not (it.place / big.pilot_id / "token").exists()
    await over(it, it.dispatcher(), small.pilot_id)


@pytest.mark.parametrize("ground", [FakePbsGround, FakeLsfGround])
async def test_how_a_pilot_ended_is_known_after_its_batch_system_has_forgotten_it(
    tmp_path: Path, ground: type[FakePbsGround | FakeLsfGround]
) -> None:
    it, pilot = ground(tmp_path), order("echo no broker answers\nexit 3\n")
    await it.dispatcher().send([pilot])
    await over(it, it.dispatcher(), pilot.pilot_id)
    for path in it.queue.glob("*.json"):
        path.unlink()
    ended = await look(it.dispatcher(), pilot.pilot_id)
    assert (ended.state, ended.reason) == ("Failed", "exit code 3: no broker answers")


def full(name: str, state: str, more: str = "", owner: str = ME) -> str:
    return f"Job Id: 7.pbs\n    Job_Name = {name}\n    Job_Owner = {owner}@node\n    job_state = {state}\n{more}\n"


def test_states_of_pbs() -> None:
    def job(text: str) -> BatchJob:
        return pbs.jobs_of(text, ME)["p"]  # type: ignore[index] # a pilot's name

    assert job(full("p", "H", "    comment = held by\n\tsomebody\n")) == BatchJob(
        "7.pbs", "Waiting", "held bysomebody"
    )
    assert job(full("p", "E")).state == job(full("p", "U")).state == "Running"
    assert job(full("p", "C", "    exit_status = 0\n")) == BatchJob("7.pbs", "Done")
    assert job(full("p", "F", "    Exit_status = -3\n")) == BatchJob("7.pbs", "Failed", "exit code -3")
    assert job(full("p", "C", "    exit_status = 271\n")) == BatchJob("7.pbs", None, "signal 15")
    assert job(full("p", "C").replace("    ", "\t")).state is None, (
        "as over Slurm, where there is no exit code"
    )


def test_a_pbs_job_of_another_user_is_none_of_ours_whatever_its_variables_say() -> None:
    lies = "    Variable_List = WMS_PILOT=p,X=\n    Job_Owner = me@node\n    job_state = C\n"
    assert pbs.jobs_of(full("p", "R", lies, owner="mallory"), "me") == {}
    mine = pbs.jobs_of(full("p", "R", lies, owner="me"), "me")
    assert [job.state for job in mine.values()] == ["Running"]


def test_states_of_lsf() -> None:
    lines = [
        "1|PEND|-|-|a",
        "2|UNKWN|-|-|b",
        "3|DONE|-|-|c",
        "4|EXIT|3|-|d",
        "5|EXIT|143|TERM_OWNER: killed|e",
    ]
    found = lsf.jobs_of("\n".join([*lines, "6|ZOMBI|-|-|f", "7|RUN|-|-|a", "not a job"]))
    assert [(job.state, job.reason, job.lost) for job in found.values()] == [
        ("Running", "", None),
        ("Running", "", None),
        ("Done", "", None),
        ("Failed", "exit code 3", None),
        (None, "TERM_OWNER: killed", None),
        ("Failed", "it ended without an exit code", Code.NODE_LOST),
    ]


async def test_a_server_that_says_nothing_sensible_is_unavailable(tmp_path: Path) -> None:
    ground = FakePbsGround(tmp_path)
    for tool in ("qstat", "qsub"):
        (tmp_path / "bin" / tool).write_text("#!/bin/sh\necho Connection timed out\nexit 1\n")
    with pytest.raises(Unavailable):
        await ground.dispatcher().follow([order().pilot_id])
    with pytest.raises(Unavailable):
        await ground.dispatcher().send([order()])
