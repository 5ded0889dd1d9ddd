"""What Apptainer is told; and the tests of images on a real one, as an ordinary user, as pilots at sites are."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from deploy.testbed import apptainer as testbed
from services.job_agent.payload.apptainer import Apptainer
from tests.services.job_agent.payload import other_user
from tests.services.job_agent.payload.contained_payloads import payload_of
from wms.errors import Rejected


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_ordinary_user_runs_payloads_in_images() -> None:
    if lack := other_user.missing("busybox") or testbed.lack():
        pytest.skip(f"APPTAINER NOT TESTED: this machine lacks {lack}")
    assert "SKIPPED" not in other_user.run_image_tests(testbed.entering)


def test_it_takes_names_of_registries_and_paths(tmp_path: Path) -> None:
    assert "oras://host/a" in Apptainer().command(payload_of(tmp_path, "oras://host/a"))[0]
    assert "docker://host/a" in Apptainer().command(payload_of(tmp_path, "host/a"))[0]


def test_it_finds_no_passwords_of_registries_and_leaves_its_files_with_the_attempt(tmp_path: Path) -> None:
    _, environment = Apptainer().command(payload_of(tmp_path, "a"))
    own = Path(environment["APPTAINER_CONFIGDIR"])
    assert own.parent == tmp_path
    assert list(own.iterdir()) == []
    assert Path(environment["APPTAINER_TMPDIR"]) == own
    assert own not in Path(environment["APPTAINER_CACHEDIR"]).parents


def test_singularity_is_told_by_names_of_its_own(tmp_path: Path) -> None:
    argv, environment = Apptainer("singularity").command(payload_of(tmp_path, "a", A="1"))
    assert argv[0] == "singularity"
    assert environment["SINGULARITYENV_A"] == "1"
    assert not [name for name in environment if name.startswith("APPTAINER")]


@pytest.mark.parametrize("home", ["relative", "/a:/b", "/a,b", ""])
def test_a_home_that_it_could_misread_is_refused(home: str, tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="HOME"):
        Apptainer().command(payload_of(tmp_path, "a", HOME=home))


def test_a_container_sees_gpus_if_its_payload_has_some(tmp_path: Path) -> None:
    without = payload_of(tmp_path, "a")
    assert "--nv" not in Apptainer().command(without)[0]
    assert "--nv" in Apptainer().command(replace(without, has_gpus=True))[0]
