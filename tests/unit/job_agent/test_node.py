"""A node is judged by what is measured on it, and by what its element told where that cannot be seen."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.job_agent import node
from services.job_agent.node import NodeJudge, clock_mhz, gpus, measure
from services.job_agent.offered import DecodedOffer, read
from wms.ids import Epoch, JobId
from wms.matching.ads import advertised
from wms.matching.clauses import fits
from wms.matching.grouping import Requirements
from wms.matching.node_facts import NOTHING_EVALUATED, wish
from wms.messages.site_inbox import OfferedJob
from wms.runtime.pilot_config import PilotConfig
from wms.site import Resource, Value, with_ad

MEASURED: dict[str, Value] = {
    "GlueHostMainMemoryRAMSize": 900,
    "GlueHostApplicationSoftwareRunTimeEnvironment": ("APP1",),
}
TOLD = "[GlueHostMainMemoryRAMSize = 4000; GlueHostBenchmarkSI00 = 400; GlueCEStateFreeCPUs = 0; PerCore = GlueHostMainMemoryRAMSize / 2]"


def config(ad: str = TOLD, **resource: Any) -> PilotConfig:
    pilot = {
        "pilot_id": "p",
        "site": "s",
        "ce": "c",
        "vo": "v",
        "slots": 1,
        "token_file": "t",
        "directory": "d",
    }
    said = {"pilot": pilot, "sandboxes": {"url": "file:///s"}, "resource": {"ad": ad, **resource}}
    return msgspec.convert(said, PilotConfig)


def job(requirements: str, **more: Any) -> DecodedOffer:
    description = {"executable": "true", "requirements": requirements, **more}
    return read(OfferedJob(
        job_id=JobId(1), epoch=Epoch(1), owner="ann", owner_group="g", vo="v",
        description=msgspec.Raw(msgspec.json.encode(description)),
    ))  # fmt: skip


def fault(requirements: str, **more: Any) -> str:
    return NodeJudge(config(), MEASURED).fault(job(requirements, **more))


@pytest.mark.parametrize(
    "requirements",
    [
        "",
        "other.GlueHostMainMemoryRAMSize >= 900",
        'Member("APP1", other.GlueHostApplicationSoftwareRunTimeEnvironment)',
        "other.GlueHostMainMemoryRAMSize >= MY.MinRAM && other.GlueHostBenchmarkSI00 < 500",
        'Site == "s"',
    ],
)
def test_a_node_that_will_do_is_taken(requirements: str) -> None:
    assert fault(requirements, memory_mb=900) == ""


@pytest.mark.parametrize(
    ("requirements", "reason"),
    [
        (
            "other.GlueHostMainMemoryRAMSize >= 2000 && other.GlueHostBenchmarkSI00 < 500",
            "other.GlueHostMainMemoryRAMSize >= 2000 is false where other.GlueHostMainMemoryRAMSize = 900",
        ),
        ('Member("APP2", other.GlueHostApplicationSoftwareRunTimeEnvironment)', "is false where"),
        ("other.PerCore > 1000", "other.PerCore > 1000 is false where other.PerCore = 450"),
        ("other.GlueHostMainMemoryRAMSize + other.Nowhere > 0", "is undefined where"),
        ("other.GlueHostMainMemoryRAMSize", "a number is not true"),
        ("other.(", "cannot be judged here"),
    ],
)
def test_a_node_that_will_not_is_told_by_the_term_that_fails_and_its_values(
    requirements: str, reason: str
) -> None:
    assert reason in fault(requirements)


def test_what_is_measured_nowhere_was_judged_by_the_matcher_with_a_newer_ad() -> None:
    assert fault("other.GlueCEStateFreeCPUs > 0 && other.Nowhere == 1") == ""
    assert fault("other.GlueCEStateFreeCPUs > 0 && other.GlueHostMainMemoryRAMSize > 900")


def test_own_attributes_of_the_job_are_looked_at() -> None:
    wanted = "other.GlueHostMainMemoryRAMSize > MY.Wanted"
    assert fault(wanted, attributes={"Wanted": 100}) == ""
    assert "is false" in fault(wanted, attributes={"Wanted": 1000})


def test_what_failed_is_told_with_requests_so_that_it_is_not_offered_again() -> None:
    here = NodeJudge(config(), MEASURED)
    assert not here.unfit
    here.fault(job("other.GlueHostMainMemoryRAMSize  >  2000"))
    here.fault(job("other.GlueHostMainMemoryRAMSize > 10"))
    wanted = "other.gluehostmainmemoryramsize > 2000"
    assert here.unfit == (wish(wanted),)
    ad = advertised({"GlueHostMainMemoryRAMSize": 4_000}, {}, "", "")
    told = with_ad(Resource(setup="", vo="v", cpu_time=10, unfit=here.unfit), ad)
    asked = Requirements(owner="a", owner_group="g", vo="v", setup="", cpu_segment=1)
    refused = fits(msgspec.structs.replace(asked, requirements=wanted), told)
    assert refused is not None
    assert refused.clause == "node"
    assert fits(asked, told) is None
    assert (
        fits(msgspec.structs.replace(asked, requirements=wanted), msgspec.structs.replace(told, unfit=()))
        is None
    )


def test_only_so_many_are_remembered() -> None:
    here = NodeJudge(config(), MEASURED)
    for number in range(node.UNFIT_LIMIT + 5):
        assert here.fault(job(f"other.GlueHostMainMemoryRAMSize > {number + 1000}"))
    assert node.UNFIT_LIMIT // 2 < len(here.unfit) <= node.UNFIT_LIMIT


def test_a_pilot_without_the_library_says_so_and_takes_no_jobs_with_requirements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(node, "can_evaluate", lambda: False)
    here = NodeJudge(config(), MEASURED)
    assert here.unfit == (NOTHING_EVALUATED,)
    assert "no library" in here.fault(job("true"))
    assert here.fault(job("")) == ""


def test_this_machine_is_measured(tmp_path: Path) -> None:
    (tmp_path / "APP1").touch()
    found = measure(config(software=str(tmp_path)))
    assert isinstance(found["GlueHostMainMemoryRAMSize"], int)
    assert found["GlueHostApplicationSoftwareRunTimeEnvironment"] == ("APP1",)
    assert "GlueHostApplicationSoftwareRunTimeEnvironment" not in measure(config())
    wanted = "other.GlueHostArchitectureSMPSize >= 1 && other.GlueHostMainMemoryRAMSize > 100 && isString(other.GlueHostOperatingSystemName)"
    assert NodeJudge(config("")).fault(job(wanted)) == ""


def test_clocks_and_gpus_are_read(tmp_path: Path) -> None:
    assert clock_mhz("cpu MHz\t\t: 2499.998\ncpu MHz : 3000.1\n") == 3000
    assert clock_mhz("Features : fp") == 0
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / name).touch()
    assert gpus({}, tmp_path) == 2
    assert gpus({"CUDA_VISIBLE_DEVICES": "0"}, tmp_path) == 1
    assert gpus({"CUDA_VISIBLE_DEVICES": ""}, tmp_path) == 0
