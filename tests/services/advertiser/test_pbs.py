"""PBS as the advertiser reads it, against a fake of its tools."""

from pathlib import Path

import pytest

from services.advertiser.config import PbsQueues
from services.advertiser.pbs import Pbs
from tests.services.advertiser.batch_systems import pbs, slots
from wms.errors import Unavailable


@pytest.mark.parametrize(
    ("flavour", "expected"),
    [
        ("torque", {"long": (16, 5), "short": (32, 0)}),
        ("pbspro", {"workq": (64, 36), "gpu": (64, 0), "express": (32, 32)}),
    ],
)
async def test_pbs_queues_are_elements(
    tmp_path: Path, data: Path, flavour: str, expected: dict[str, tuple[int, int]]
) -> None:
    assert await slots(pbs(tmp_path, data, flavour)) == expected
    assert await slots(pbs(tmp_path, data, flavour, server="pbs.example.org")) == expected


async def test_a_tool_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be run: No such file"):
        await Pbs(PbsQueues(site="s", directory=str(tmp_path))).read()
