"""What Podman is told, and which images it does not take."""

import resource
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from services.job_agent.payload.container import files_of_payload
from services.job_agent.payload.podman import Podman
from tests.services.job_agent.payload.contained_payloads import payload_of
from wms.errors import Rejected


def test_it_takes_no_images_of_apptainer(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="oras"):
        Podman().command(payload_of(tmp_path, "oras://host/a"))


def test_it_takes_no_path_whose_end_it_would_read_as_an_option(tmp_path: Path) -> None:
    for each in (tmp_path, *tmp_path.parents):
        with suppress(PermissionError):
            each.chmod(each.stat().st_mode | 0o005)
    (tmp_path / "image:O").mkdir(mode=0o755)
    with pytest.raises(Rejected, match="without a colon"):
        Podman().command(payload_of(tmp_path, str(tmp_path / "image:O")))


def test_it_finds_no_passwords_of_registries(tmp_path: Path) -> None:
    _, environment = Podman().command(payload_of(tmp_path, "a"))
    assert Path(environment["REGISTRY_AUTH_FILE"]).read_text() == "{}\n"


def test_a_payload_may_open_fewer_files_than_its_pilot(tmp_path: Path) -> None:
    assert files_of_payload(1_024, 20_000) == (1_024, 10_000)
    assert files_of_payload(20_000, 20_000) == (10_000, 10_000)
    command, _ = Podman().command(payload_of(tmp_path, "a"))
    (given,) = [each.partition("nofile=")[2] for each in command if "nofile=" in each]
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert int(given.partition(":")[2]) <= hard / 2


def test_a_container_sees_gpus_if_its_payload_has_some(tmp_path: Path) -> None:
    without = payload_of(tmp_path, "a")
    assert "--device=nvidia.com/gpu=all" not in Podman().command(without)[0]
    assert "--device=nvidia.com/gpu=all" in Podman().command(replace(without, has_gpus=True))[0]
