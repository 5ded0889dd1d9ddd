"""Each kind of sandbox store in turn."""

import itertools
from pathlib import Path

import pytest

from tests.contract.sandbox_store.stores import DirectoryGround, S3Ground, StoreGround
from tests.s3_proxy import S3Proxy
from wms.transfer import SandboxStore

_numbers = itertools.count()


@pytest.fixture
def s3_ground(s3_proxy: S3Proxy) -> S3Ground:
    return S3Ground(s3_proxy, f"sandboxes-{next(_numbers)}")


@pytest.fixture(params=["directory", pytest.param("s3", marks=pytest.mark.timeout(240))])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> StoreGround:
    if request.param == "directory":
        return DirectoryGround(tmp_path)
    found: S3Ground = request.getfixturevalue("s3_ground")
    return found


@pytest.fixture
def store(ground: StoreGround) -> SandboxStore:
    return ground.open()
