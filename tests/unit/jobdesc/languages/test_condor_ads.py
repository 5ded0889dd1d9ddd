"""Requirements and ranks over HTCondor's machines, in words of our ads."""

import pytest

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import satisfied
from wms.jobdesc.languages import condor_ads
from wms.jobdesc.languages.condor_job import CondorJob
from wms.jobdesc.languages.condor_text import Command
from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.loss_report import Origin


def required(text: str) -> tuple[str | None, str]:
    """Return the requirements that an expression becomes, and its fate."""
    draft = JobDraft()
    draft.put("processors", 4, Origin("request_cpus"))
    condor_ads.requirements(CondorJob(draft, {}), Command("requirements", text, 1))
    return draft.get("requirements"), draft.notes.report().entries[-1].fate


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ('(OpSys == "LINUX") && (Arch == "X86_64")', '(other.GlueHostArchitecturePlatformType == "x86_64")'),
        ('TARGET.Arch =?= "x86_64"', '(other.GlueHostArchitecturePlatformType == "x86_64")'),
        ("Memory > 100", "(other.MaxRAM > 100)"),
        ("TARGET.Cpus >= RequestCpus", "(other.NumberOfProcessors >= 4)"),
        ("TARGET.Cpus >= MY.RequestCpus", "(other.NumberOfProcessors >= 4)"),
        ('OpSys != "LINUX"', "(false)"),
        ('TARGET.Machine =!= "n1.a.org"', '(other.GlueHostName != "n1.a.org")'),
        ('OpSys == "WINDOWS" || Memory > 1', "(other.MaxRAM > 1)"),
        (
            "CUDACapability >= 7 && 2000 < GPUs_GlobalMemoryMb",
            "(other.GPUCapability >= 7 && 2000 < other.GPUMemory)",
        ),
    ],
)
def test_requirements_mean_the_same(text: str, ours: str) -> None:
    assert required(text) == (ours, "translated")


@pytest.mark.parametrize("text", ['OpSys == "LINUX"', "true"])
def test_what_holds_everywhere_needs_nothing(text: str) -> None:
    assert required(text) == (None, "kept")


@pytest.mark.parametrize(
    "text",
    [
        *('OpSysAndVer == "Solaris5"', "HasJava", "SlotID != 3", "MY.x > 1", 'Arch == "INTEL"'),
        # A node tells the least that its GPUs have.
        *(
            "CUDACapability < 8",
            "CUDACapability == 7.5",
            "!(CUDACapability >= 8)",
            "(GPUs_Capability > 8) == false",
        ),
    ],
)
def test_what_our_ads_lack_is_refused(text: str) -> None:
    assert required(text) == (None, "impossible")


@pytest.mark.parametrize("text", ["HasDocker", "TARGET.HasSingularity =?= true"])
def test_a_job_in_an_image_goes_to_nodes_that_run_images_in_any_case(text: str) -> None:
    draft, image = JobDraft(), Command("docker_image", "alpine:3", 1)
    condor_ads.requirements(CondorJob(draft, {"docker_image": image}), Command("requirements", text, 2))
    assert draft.get("requirements") is None
    assert draft.notes.report().entries[-1].fate == "kept"


@pytest.mark.parametrize(
    ("text", "ours", "fate"),
    [
        ("(Capability >= 7.5) && GlobalMemoryMb > 8000", "(other.GPUCapability >= 7.5 && other.GPUMemory > 8000)", "translated"),
        ("DriverVersion < 12.1", "(other.GPUCudaVersion < 12.1)", "translated"),
        ('DeviceName == "A100"', '(other.GPUName == "A100")', "translated"),
        ('DevicePciBusId == "0000:01"', None, "impossible"),
        ("Capability < 8", None, "impossible"),
    ],
)  # fmt: skip
def test_what_each_gpu_must_have_is_a_requirement_on_the_node(text: str, ours: str | None, fate: str) -> None:
    draft = JobDraft()
    condor_ads.gpu_requirements(CondorJob(draft, {}), Command("require_gpus", text, 1))
    assert draft.get("requirements") == ours
    assert draft.notes.report().entries[-1].fate == fate


def node(name: str, release: str) -> Ad:
    told = {"GlueHostOperatingSystemName": name, "GlueHostOperatingSystemRelease": release}
    return Ad.of({**told, "WMSContainers": "apptainer 1.3"})


@pytest.mark.parametrize(
    ("text", "centos", "alma"),
    [
        ('OpSysAndVer == "CentOS7"', True, False),
        ('OpSysAndVer =!= "CentOS7"', False, True),
        ('OpSysName =?= "AlmaLinux"', False, True),
        ("OpSysMajorVer >= 8", False, True),
        ("TARGET.HasSingularity =?= true", True, True),
        ("HAS_SINGULARITY == TRUE", True, True),
    ],
)
def test_systems_are_told_by_their_names(text: str, centos: bool, alma: bool) -> None:  # noqa: FBT001 - expected values
    ours, _ = required(text)
    expression = Expression.parse(ours or "")
    assert satisfied(expression, node("CentOS Linux", "7")) is centos
    assert satisfied(expression, node("AlmaLinux", "9.4")) is alma


def test_a_rank_is_only_a_preference() -> None:
    draft = JobDraft()
    job = CondorJob(draft, {})
    condor_ads.rank(job, Command("rank", "KFlops", 1))
    assert [each.fate for each in draft.notes.report().entries] == ["omitted"]
    condor_ads.rank(job, Command("rank", "Memory", 2))
    assert draft.get("rank") == "other.MaxRAM"


def test_the_guide_shows_the_attributes() -> None:
    assert condor_ads.shown_attributes()["memory"] == "other.MaxRAM"
