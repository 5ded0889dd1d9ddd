"""Logical names."""

from pathlib import Path
from random import Random

import pytest

from tests.contract.transfer.conftest import MIB
from tests.contract.transfer.storages import Nginx
from wms.errors import Rejected
from wms.jobdesc.staged_file import InputFile
from wms.transfer.fetching import UNAVAILABLE, Fetcher
from wms.transfer.movers import Movers
from wms.transfer.replica_resolver import FileCatalogue


async def test_logical_names_come_from_a_catalogue(nginx: Nginx, tmp_path: Path) -> None:
    nginx.write("in/good", b"good")
    path = tmp_path / "catalogue.json"
    path.write_text(f'{{"lfn:/data/a": ["{nginx.url("in/none")}", "{nginx.url("in/good")}"]}}')
    fetching = Fetcher(Movers(nginx.settings), FileCatalogue(path), nginx.settings.limits, Random(1))
    await fetching.fetch(InputFile(name="f", sources=("lfn:/data/a",)), tmp_path / "f", MIB)
    assert (tmp_path / "f").read_bytes() == b"good"
    with pytest.raises(Rejected, match="no replica of lfn:/data/b") as refused:
        await fetching.fetch(InputFile(name="g", sources=("lfn:/data/b",)), tmp_path / "g", MIB)
    assert refused.value.code == UNAVAILABLE
