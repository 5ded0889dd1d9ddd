"""What only the mover of S3 does: signed URLs, wrong credentials, uploads in parts."""

import asyncio
import os
from pathlib import Path

import msgspec
import pytest

from tests.contract.transfer.conftest import MIB, deliverer, fetcher, refusal, sending
from tests.contract.transfer.held_parts import HeldParts
from tests.contract.transfer.storages import S3, settings
from tests.s3_proxy import S3Proxy
from tests.waiting import eventually
from tests.web_server import web_server
from wms.errors import Rejected
from wms.jobdesc.staged_file import InputFile
from wms.transfer.file_url import FileUrl
from wms.transfer.s3_mover import S3Mover, part_size
from wms.transfer.transfer_limits import GIB, Meter, TransferLimits

pytestmark = pytest.mark.timeout(240)


async def test_a_signed_url_works_and_its_signature_is_never_told(s3: S3, tmp_path: Path) -> None:
    s3.write("signed", b"secret")
    url = s3.signed("signed")
    await fetcher(settings()).fetch(InputFile(name="f", sources=(url,)), tmp_path / "f", MIB)
    assert (tmp_path / "f").read_bytes() == b"secret"
    (tmp_path / "f").unlink()
    target = s3.signed("put-by-url", "put_object")
    await deliverer(settings()).deliver("r", sending(tmp_path, b"put"), (target,))
    assert s3.read("put-by-url") == b"put"
    (tmp_path / "source").unlink()
    refused = await refusal(fetcher(settings()), tmp_path, s3.signed("nowhere"))
    assert "Signature" not in str(refused)
    assert "nowhere?..." in str(refused)


async def test_a_wrong_secret_key_is_said_to_be_denied_access(
    s3: S3, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    s3.write("closed", b"secret")
    wrong = msgspec.structs.replace(s3.settings, s3=s3_proxy.settings_with(tmp_path, "wrong-secret"))
    (tmp_path / "work").mkdir()
    refused = await refusal(fetcher(wrong), tmp_path / "work", s3.url("closed"))
    assert "the server denies access" in str(refused)
    with pytest.raises(Rejected, match="the server denies access"):
        await deliverer(wrong).deliver("r", sending(tmp_path, b"put"), (s3.url("put-closed"),))
    assert s3.read("put-closed") is None


@pytest.mark.parametrize(("size", "parts"), [(1, 1), (20 * MIB, 3), (100 * GIB, 10_000)])
def test_a_file_has_at_most_as_many_parts_as_s3_takes(size: int, parts: int) -> None:
    assert -(-size // part_size(size)) == parts


async def test_a_put_counts_few_bytes_before_the_server_has_them(s3: S3, tmp_path: Path) -> None:
    """What is counted is the progress by which a slow upload is told from one that stalls."""
    held = HeldParts(s3.settings.s3.endpoint)
    moved: list[int] = []
    meter = Meter(TransferLimits(), GIB, moved.append)
    async with web_server(held.application) as port:
        settings = msgspec.structs.replace(s3.settings.s3, endpoint=f"http://127.0.0.1:{port}")
        mover = S3Mover(s3.settings.access, settings)
        file = sending(tmp_path, os.urandom(8 * part_size(0)))
        putting = asyncio.create_task(mover.put(file, FileUrl.parse(s3.url("held")), meter))
        await eventually(lambda: held.waiting >= 2)
        early = sum(moved)
        held.go_on.set()
        await putting
    assert early <= 4 * part_size(0)
    assert held.most_waiting == 2
    assert sum(moved) == file.size
    assert s3.read("held") == file.source.read_bytes()
