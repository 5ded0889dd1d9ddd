"""Containers of images by Podman for a user who is not root, as pilots at sites are."""

import pytest

from tests.services.job_agent.payload import other_user


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_ordinary_user_runs_payloads_in_images() -> None:
    if lack := other_user.missing("podman", "newuidmap", "busybox"):
        pytest.skip(f"no containers as another user here: {lack}")
    assert "no container runs here" not in other_user.run_image_tests(list)
