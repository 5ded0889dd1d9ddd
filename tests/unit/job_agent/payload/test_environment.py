"""The environment of a payload."""

from pathlib import Path

from services.job_agent.payload.environment import environment_of
from wms.ids import Epoch, JobId, PilotId, SiteName


def test_the_environment_passes_only_what_is_named() -> None:
    agent = {"PATH": "/bin", "LANG": "de_DE", "WMS_TOKEN": "t", "SECRET": "s", "X509_CERT_DIR": "/certs"}
    made = environment_of(
        agent=agent, user={"A": "1", "WMS_SITE": "forged", "HOME": "/mine"}, job_id=JobId(7), epoch=Epoch(2),
        site=SiteName("S"), pilot_id=PilotId("p"), work=Path("/w"), scratch=Path("/t"), passed=("X509_CERT_DIR",),
    )  # fmt: skip
    assert made == {
        "PATH": "/bin", "LANG": "de_DE", "X509_CERT_DIR": "/certs", "A": "1", "HOME": "/mine", "PWD": "/w", "TMPDIR": "/t",
            "PYTHONUNBUFFERED": "1",
        "WMS_JOB_ID": "7", "WMS_EPOCH": "2", "WMS_SITE": "S", "WMS_PILOT": "p", "WMS_PROCESSORS": "1", "WMS_WORK": "/w", "WMS_SCRATCH": "/t",
    }  # fmt: skip
