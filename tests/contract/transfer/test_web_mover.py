"""Fetching from web servers that die, lie or are full."""

import asyncio
import hashlib
from pathlib import Path

import pytest

from tests.contract.transfer.conftest import MIB, deliverer, fetcher, refusal, sending
from tests.contract.transfer.faulty_web_server import CONTENT, FaultyWebServer
from tests.contract.transfer.storages import Nginx, settings
from wms.errors import Rejected
from wms.jobdesc.staged_file import InputFile
from wms.transfer.fetching import CORRUPT
from wms.transfer.mover import FULL

CHECKSUM = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@pytest.mark.parametrize("checksum", ["", CHECKSUM], ids=["by-its-tag", "by-its-checksum"])
async def test_a_server_that_dies_midway_is_resumed(
    lying: FaultyWebServer, tmp_path: Path, checksum: str
) -> None:
    wanted = InputFile(name="f", sources=(lying.url("cut"),), size=len(CONTENT), checksum=checksum)
    await fetcher(settings()).fetch(wanted, tmp_path / "f", len(CONTENT))
    assert (tmp_path / "f").read_bytes() == CONTENT
    assert lying.ranges[0] == ""
    assert lying.ranges[1].startswith("bytes=")


async def test_content_that_changed_meanwhile_is_fetched_anew(lying: FaultyWebServer, tmp_path: Path) -> None:
    fetching = asyncio.create_task(
        fetcher(settings()).fetch(InputFile(name="f", sources=(lying.url("cut"),)), tmp_path / "f", MIB)
    )
    while not lying.ranges:
        await asyncio.sleep(0)
    lying.tags = '"two"'
    await fetching
    assert (tmp_path / "f").read_bytes() == CONTENT


async def test_an_endless_body_ends_at_its_bound(lying: FaultyWebServer, tmp_path: Path) -> None:
    refused = await refusal(fetcher(settings()), tmp_path, lying.url("endless"))
    assert refused.code == CORRUPT
    assert "more than the 1,048,576 bytes" in refused.message


async def test_a_body_that_is_packed_is_refused(lying: FaultyWebServer, tmp_path: Path) -> None:
    refused = await refusal(fetcher(settings()), tmp_path, lying.url("packed"))
    assert "compressed" in refused.message


async def test_a_full_storage_is_told(nginx: Nginx, tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="507 Insufficient Storage") as refused:
        await deliverer(nginx.settings).deliver("r", sending(tmp_path, b"x"), (nginx.url("full/x"),))
    assert refused.value.code == FULL
