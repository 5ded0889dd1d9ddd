"""Directories of pilots: old ones go, and those of living pilots stay."""

import os
from pathlib import Path

from tests.contract.dispatch.processes import order
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.pilot_directories import KEPT_DIRECTORIES


async def test_old_directories_go_and_those_of_living_pilots_stay(
    dispatcher: LocalDispatcher, tmp_path: Path
) -> None:
    await dispatcher.send([order("alive")])
    for n in range(KEPT_DIRECTORIES + 5):
        place = tmp_path / f"old{n:03}"
        place.mkdir()
        (place / "process").write_text('{"pid": 1, "started_at": 0.0}')
        os.utime(place, (n, n))
    await dispatcher.forget([])
    left = {place.name for place in tmp_path.iterdir()}
    assert len(left) == KEPT_DIRECTORIES + 1
    assert {"alive", f"old{KEPT_DIRECTORIES + 4:03}"} <= left
    assert "old000" not in left
