"""What the fakes of batch systems' tools print."""

import shutil
from pathlib import Path

import pytest

from tests.services.advertiser.batch_systems import DATA


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return what the fakes print, to be changed by a test."""
    for name in ("pbs", "lsf"):
        shutil.copytree(DATA / name, tmp_path / "data" / name)
    return tmp_path / "data"
