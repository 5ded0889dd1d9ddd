"""The advertiser as it is put together: a loop each for this machine and for every other source, and its heartbeat."""

from pathlib import Path

import msgspec
import pytest

from services.advertiser.config import Config
from services.advertiser.service import build
from wms.bus.kafka import Kafka
from wms.errors import Rejected
from wms.runtime.process import LoopProcess


def put_together(tmp_path: Path, **told: object) -> list[str]:
    """Return the names of the loops of an advertiser that is told this."""
    config = msgspec.convert({"advertising": {"token_file": str(tmp_path / "token")}, **told}, Config)
    process = LoopProcess()
    build(process, config, Kafka(config.kafka, "advertiser"))
    return [each.name for each in process._loops]


async def test_each_source_has_a_loop(tmp_path: Path) -> None:
    element = {"site": "A", "ce": "here", "slots": 1}
    files = [{"site": "A", "path": str(tmp_path / name)} for name in ("one.ldif", "two.xml")]
    names = put_together(tmp_path, elements=[element], files=files)
    assert names == ["advertise-machine", "advertise-file-0", "advertise-file-1", "heartbeat"]


async def test_an_expression_that_is_none_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(Rejected):
        put_together(
            tmp_path, elements=[{"site": "A", "ce": "here", "slots": 1, "requirements": "other.Memory >="}]
        )


@pytest.mark.parametrize("table", ["auth", "postgres"])
def test_what_lets_it_into_the_system_is_not_taken(tmp_path: Path, table: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"unknown field `{table}`"):
        put_together(tmp_path, **{table: {}})
