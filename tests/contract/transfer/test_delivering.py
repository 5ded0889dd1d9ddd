"""What delivering does with every storage: a file is there whole or not at all."""

from pathlib import Path

import pytest

from tests.contract.transfer.conftest import LARGE, deliverer, sending
from tests.contract.transfer.storages import Storage
from wms.errors import Rejected


@pytest.mark.parametrize("data", [b"", b"new", LARGE], ids=["empty", "small", "large"])
async def test_a_file_is_put_in_place_of_another(storage: Storage, tmp_path: Path, data: bytes) -> None:
    target = f"out/{len(data)}/result"
    for each in (b"first", data):
        done = await deliverer(storage.settings).deliver("r", sending(tmp_path, each), (storage.url(target),))
        assert [transfer.size for transfer in done] == [len(each)]
        assert storage.read(target) == each
    assert not [name for name in storage.names() if "part" in name]


async def test_an_attempt_without_its_lease_changes_nothing(storage: Storage, tmp_path: Path) -> None:
    await deliverer(storage.settings).deliver(
        "r", sending(tmp_path, b"newer", ".1.2.part"), (storage.url("out/f"),)
    )
    stale = sending(tmp_path, b"stale", ".1.1.part", lives=False)
    with pytest.raises(Rejected) as refused:
        await deliverer(storage.settings).deliver("r", stale, (storage.url("out/f"),))
    assert refused.value.code == "LEASE_OVER"
    assert storage.read("out/f") == b"newer"
    assert not [name for name in storage.names() if "part" in name]
