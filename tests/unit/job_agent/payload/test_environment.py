"""The environment of a payload."""

from pathlib import Path

from services.job_agent.payload.environment import THREADS, Allotment, environment_of
from wms.ids import Epoch, JobId, PilotId, SiteName


def made(
    agent: dict[str, str], user: dict[str, str], memory_bytes: int | None = None, **allotted: object
) -> dict[str, str]:
    return environment_of(
        agent=agent, user=user, job_id=JobId(7), epoch=Epoch(2),
        site=SiteName("S"), pilot_id=PilotId("p"), work=Path("/w"), scratch=Path("/t"), passed=("X509_CERT_DIR",),
        memory_bytes=memory_bytes, allotted=Allotment(**allotted),  # type: ignore[arg-type]
    )  # fmt: skip


def test_the_environment_passes_only_what_is_named() -> None:
    agent = {"PATH": "/bin", "LANG": "de_DE", "WMS_TOKEN": "t", "SECRET": "s", "X509_CERT_DIR": "/certs"}
    found = made(agent, {"A": "1", "WMS_SITE": "forged", "HOME": "/mine"})
    assert found == dict.fromkeys(THREADS, "1") | {
        "PATH": "/bin", "LANG": "de_DE", "X509_CERT_DIR": "/certs", "A": "1", "HOME": "/mine", "PWD": "/w", "TMPDIR": "/t",
            "PYTHONUNBUFFERED": "1", "CUDA_VISIBLE_DEVICES": "", "_CONDOR_SCRATCH_DIR": "/w",
        "WMS_JOB_ID": "7", "WMS_EPOCH": "2", "WMS_SITE": "S", "WMS_PILOT": "p", "WMS_PROCESSORS": "1", "WMS_GPUS": "0", "WMS_WORK": "/w", "WMS_SCRATCH": "/t",
    }  # fmt: skip


def test_it_tells_what_the_job_has_and_its_own_word_on_threads_counts() -> None:
    user = {"MKL_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}
    found = made({"OMP_NUM_THREADS": "64"}, user, processors=4, memory_bytes=3 << 30, gpus=("GPU-a", "MIG-b"))
    assert (found["OMP_NUM_THREADS"], found["MKL_NUM_THREADS"]) == ("4", "2")
    assert (found["WMS_PROCESSORS"], found["WMS_MEMORY_MB"], found["WMS_GPUS"]) == ("4", "3072", "2")
    assert found["CUDA_VISIBLE_DEVICES"] == "GPU-a,MIG-b"
