"""What is LSF's own, against a fake of its tools."""

from pathlib import Path

from tests.contract.dispatch.batch_systems import POLICY, options_of
from tests.contract.dispatch.grounds import ENDS, FakeLsfGround, order
from wms.dispatch import lsf
from wms.dispatch.port import Request
from wms.job.reasons import Code


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
