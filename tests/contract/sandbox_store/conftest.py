"""Each kind of sandbox store in turn; one server of S3 for all tests."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.sandbox_store.stores import DirectoryGround, S3Ground, S3Server, StoreGround
from wms.transfer import SandboxStore

_numbers = itertools.count()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.fixture
def s3_ground(s3_server: S3Server) -> S3Ground:
    return S3Ground(s3_server, f"sandboxes-{next(_numbers)}")


@pytest.fixture(params=["directory", "s3"])
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> StoreGround:
    if request.param == "directory":
        return DirectoryGround(tmp_path)
    found: S3Ground = request.getfixturevalue("s3_ground")
    return found


@pytest.fixture
def store(ground: StoreGround) -> SandboxStore:
    return ground.open()
