"""What is PBS's own, against a fake of its tools."""

import os
import pwd
from pathlib import Path

import pytest

from tests.contract.dispatch.batch_systems import POLICY, options_of
from tests.contract.dispatch.grounds import ENDS, FakePbsGround, order
from wms.dispatch import pbs
from wms.dispatch.batch import BatchJob
from wms.dispatch.port import Request
from wms.errors import Unavailable

ME = pwd.getpwuid(os.geteuid()).pw_name


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


async def test_a_server_that_says_nothing_sensible_is_unavailable(tmp_path: Path) -> None:
    ground = FakePbsGround(tmp_path)
    for tool in ("qstat", "qsub"):
        (tmp_path / "bin" / tool).write_text("#!/bin/sh\necho Connection timed out\nexit 1\n")
    with pytest.raises(Unavailable):
        await ground.dispatcher().follow([order().pilot_id])
    with pytest.raises(Unavailable):
        await ground.dispatcher().send([order()])
