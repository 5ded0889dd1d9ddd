"""The lifeline: what is started with it ends with the system."""

from pathlib import Path

import pytest

from wms.embedded.lifeline import Lifeline
from wms.errors import Unavailable


def test_no_lifeline_without_a_system(tmp_dir: Path) -> None:
    with pytest.raises(Unavailable, match="not up"):
        Lifeline.open(tmp_dir / "up.lock")
