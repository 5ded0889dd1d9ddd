"""What Podman is told, and which images it does not take."""

from pathlib import Path

import pytest

from services.job_agent.payload.podman import Podman
from tests.services.job_agent.payload.contained_payloads import payload_of
from wms.errors import Rejected


def test_it_takes_no_images_of_apptainer(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="oras"):
        Podman().command(payload_of(tmp_path, "oras://host/a"))


def test_it_finds_no_passwords_of_registries(tmp_path: Path) -> None:
    _, environment = Podman().command(payload_of(tmp_path, "a"))
    assert Path(environment["REGISTRY_AUTH_FILE"]).read_text() == "{}\n"
