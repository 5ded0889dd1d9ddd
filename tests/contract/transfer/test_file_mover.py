"""Files of the node stay below the directories that the site allows."""

from pathlib import Path

import pytest

from tests.contract.transfer.conftest import deliverer, fetcher, refusal, sending
from tests.contract.transfer.storages import Directory
from wms.errors import Rejected
from wms.transfer.access_rules import REFUSED


async def test_files_of_the_node_stay_below_the_sites_directories(
    directory: Directory, tmp_path: Path
) -> None:
    (directory.root / "leak").symlink_to("/etc/passwd")
    (directory.root / "up").symlink_to("/etc")
    for path in ("leak", "up/passwd", "../x"):
        refused = await refusal(fetcher(directory.settings), tmp_path, f"file://{directory.root}/{path}")
        assert refused.code == REFUSED, path
    with pytest.raises(Rejected, match="below these directories") as refused_put:
        await deliverer(directory.settings).deliver("r", sending(tmp_path, b""), (directory.url("up/x"),))
    assert refused_put.value.code == REFUSED
    for name in ("leak", "up"):
        (directory.root / name).unlink()
