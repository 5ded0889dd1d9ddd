"""What fetching does with every storage: tries, verifies, and says why a file cannot be had."""

import asyncio
import hashlib
import os
import zlib
from pathlib import Path
from random import Random

import pytest

from tests.contract.transfer.conftest import LARGE, MIB, fetcher, refusal
from tests.contract.transfer.faulty_web_server import CONTENT, FaultyWebServer
from tests.contract.transfer.storages import Nginx, Storage, settings
from wms.errors import Rejected
from wms.jobdesc.staged_file import InputFile
from wms.transfer.fetching import CORRUPT, UNAVAILABLE, Fetcher
from wms.transfer.file_url import FileUrl
from wms.transfer.mover import Mover
from wms.transfer.movers import Movers, TransferSettings
from wms.transfer.replica_resolver import NoReplicas
from wms.transfer.transfer_limits import TransferLimits

CHECKSUM = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@pytest.mark.parametrize("data", [b"", b"few", LARGE], ids=["empty", "small", "large"])
async def test_a_file_is_fetched_and_verified(storage: Storage, tmp_path: Path, data: bytes) -> None:
    storage.write("in/a", data)
    checksums = (
        f"sha256:{hashlib.sha256(data).hexdigest()}",
        f"md5:{hashlib.md5(data).hexdigest()}",
        f"adler32:{zlib.adler32(data):08x}",
    )
    for checksum in checksums:
        into = tmp_path / checksum.partition(":")[0]
        wanted = InputFile(
            name="a", sources=(storage.url("in/a"),), size=len(data), checksum=checksum, executable=True
        )
        done = await fetcher(storage.settings).fetch(wanted, into, MIB * 100)
        assert (into.read_bytes(), done.size, done.name) == (data, len(data), "a")
        assert os.access(into, os.X_OK)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["adler32", "md5", "sha256"]


async def test_replicas_on_the_first_hosts_are_fetched_first(tmp_path: Path) -> None:
    """The order is that for which the broker predicted the time; the others follow as they are listed."""
    urls = [f"https://se.{name}.example/a" for name in ("slow", "other", "fast", "another")]
    given = TransferSettings(
        limits=TransferLimits(tries=1), first_hosts=["se.fast.example", "se.slow.example"]
    )
    tried: list[str] = []

    class Refusing(Movers):
        def mover(self, url: FileUrl) -> Mover:
            tried.append(str(url))
            raise Rejected("NO", "not today")

    fetching = Fetcher(Refusing(given), NoReplicas(), given.limits, Random(1), first_hosts=given.first_hosts)
    with pytest.raises(Rejected):
        await fetching.fetch(InputFile(name="a", sources=tuple(urls)), tmp_path / "a", MIB)
    assert tried == [urls[2], urls[0], urls[1], urls[3]]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"checksum": "adler32:1"}, "it has the checksum adler32:"),
        ({"size": 3}, "more than the 3 bytes expected"),
    ],
)
async def test_a_file_that_is_another_is_refused(
    storage: Storage, tmp_path: Path, said: dict[str, object], words: str
) -> None:
    storage.write("in/b", b"another")
    wanted = InputFile(name="b", sources=(storage.url("in/b"),), **said)  # type: ignore[arg-type]
    most = wanted.size if wanted.size is not None else MIB
    with pytest.raises(Rejected, match=words) as refused:
        await fetcher(storage.settings).fetch(wanted, tmp_path / "b", most)
    assert refused.value.code == CORRUPT
    assert not list(tmp_path.iterdir())


async def test_a_file_that_is_shorter_than_said_is_unavailable(storage: Storage, tmp_path: Path) -> None:
    storage.write("in/c", b"short")
    wanted = InputFile(name="c", sources=(storage.url("in/c"),), size=10)
    with pytest.raises(Rejected, match="5 bytes of 10 came") as refused:
        await fetcher(storage.settings).fetch(wanted, tmp_path / "c", 10)
    assert refused.value.code == UNAVAILABLE


async def test_replicas_are_tried_in_their_order(storage: Storage, tmp_path: Path) -> None:
    storage.write("in/good", b"good")
    storage.write("in/bad", b"evil")
    wanted = InputFile(
        name="d",
        sources=tuple(storage.url(f"in/{name}") for name in ("missing", "bad", "good")),
        checksum=f"md5:{hashlib.md5(b'good').hexdigest()}",
    )
    await fetcher(storage.settings).fetch(wanted, tmp_path / "d", MIB)
    assert (tmp_path / "d").read_bytes() == b"good"


async def test_a_file_that_is_nowhere_is_told_of_with_each_url(storage: Storage, tmp_path: Path) -> None:
    urls = (storage.url("in/no-1"), storage.url("in/no-2"))
    with pytest.raises(Rejected) as refused:
        await fetcher(storage.settings).fetch(InputFile(name="e", sources=urls), tmp_path / "e", MIB)
    assert refused.value.code == UNAVAILABLE
    assert all(url in refused.value.message for url in urls)


async def test_a_trickle_is_left_for_another_replica_and_delays_no_other(
    lying: FaultyWebServer, nginx: Nginx, tmp_path: Path
) -> None:
    nginx.write("in/good", CONTENT)
    fetching = fetcher(settings())
    innocent = InputFile(name="innocent", sources=(nginx.url("in/good"),))
    wanted = InputFile(name="f", sources=(lying.url("trickle"), nginx.url("in/good")), checksum=CHECKSUM)
    slow = asyncio.create_task(fetching.fetch(wanted, tmp_path / "f", MIB))
    done = await fetching.fetch(innocent, tmp_path / "innocent", MIB)
    assert (done.seconds < 1.0, slow.done()) == (True, False)
    await slow
    assert (tmp_path / "f").read_bytes() == CONTENT
    (tmp_path / "f").unlink()
    (tmp_path / "innocent").unlink()
    refused = await refusal(fetching, tmp_path, lying.url("trickle"))
    assert "too slow: under 1,000 B/s" in refused.message
