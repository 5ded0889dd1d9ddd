"""Each storage in turn, one server of a kind for all tests."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from random import Random
from typing import cast

import pytest
import pytest_asyncio

from tests.contract.transfer.faulty_web_server import FaultyWebServer, faulty_web_server
from tests.contract.transfer.storages import S3, STORAGES, Directory, Nginx, Storage
from tests.s3_proxy import S3Proxy
from wms.errors import Rejected
from wms.jobdesc.staged_file import InputFile
from wms.transfer.delivering import Deliverer
from wms.transfer.fetching import Fetcher
from wms.transfer.mover import OutgoingFile
from wms.transfer.movers import Movers, TransferSettings
from wms.transfer.replica_resolver import NoReplicas, ReplicaResolver

MIB = 1024 * 1024
LARGE = os.urandom(1024) * 20 * 1024
"""Bytes of more than one piece of any mover."""


@pytest.fixture(scope="session")
def _open_place() -> Iterator[Path]:
    """Yield a directory that servers of other users may enter."""
    place = Path(tempfile.mkdtemp(prefix="wms-storage-", dir="/tmp"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def running(_open_place: Path) -> Iterator[Callable[[str], Storage]]:
    """Yield a function that starts a kind of storage when it is first asked for."""
    started: dict[str, Storage] = {}

    def get(kind: str) -> Storage:
        if kind not in started:
            place = _open_place / kind
            place.mkdir(exist_ok=True)  # a kind that lacks its programs is asked for again, and skips again
            started[kind] = STORAGES[kind](place)
        return started[kind]

    yield get
    for each in started.values():
        each.stop()


@pytest.fixture(params=[*STORAGES, pytest.param("s3", marks=pytest.mark.timeout(240))])
def storage(request: pytest.FixtureRequest, running: Callable[[str], Storage]) -> Storage:
    return cast("S3", request.getfixturevalue("s3")) if request.param == "s3" else running(request.param)


@pytest.fixture
def nginx(running: Callable[[str], Storage]) -> Nginx:
    found = running("webdav")
    assert isinstance(found, Nginx)
    return found


@pytest.fixture(scope="session")
def s3(s3_proxy: S3Proxy) -> S3:
    return S3(s3_proxy)


@pytest.fixture
def directory(running: Callable[[str], Storage]) -> Directory:
    found = running("file")
    assert isinstance(found, Directory)
    return found


def fetcher(settings: TransferSettings, catalogue: ReplicaResolver | None = None) -> Fetcher:
    return Fetcher(Movers(settings), catalogue or NoReplicas(), settings.limits, Random(1))


def deliverer(settings: TransferSettings) -> Deliverer:
    return Deliverer(Movers(settings), settings.limits, Random(1))


def sending(place: Path, data: bytes, mark: str = ".1.1.part", *, lives: bool = True) -> OutgoingFile:
    source = place / "source"
    source.write_bytes(data)
    return OutgoingFile(source, len(data), mark, lambda: lives)


async def refusal(
    fetching: Fetcher, place: Path, *urls: str, most: int = MIB, checksum: str = ""
) -> Rejected:
    """Return why a file cannot be had; nothing of it is left."""
    wanted = InputFile(name="f", sources=urls, checksum=checksum)
    with pytest.raises(Rejected) as refused:
        await fetching.fetch(wanted, place / "f", most)
    assert not list(place.iterdir())
    return refused.value


@pytest_asyncio.fixture(loop_scope="session")
async def lying() -> AsyncIterator[FaultyWebServer]:
    async with faulty_web_server() as each:
        yield each
