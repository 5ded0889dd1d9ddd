"""The advertiser as it is put together: a loop each for this machine and for every other source."""

from pathlib import Path

import msgspec
import pytest

from services.advertiser.config import Config
from services.advertiser.service import build
from tests.services.hosting import hosted, settings
from wms.errors import Rejected


def config(tmp_path: Path, database: str, kafka: str, **told: object) -> Config:
    known = settings(tmp_path, database, kafka)
    return msgspec.convert(known | {"advertising": {"token_file": str(tmp_path / "token")}, **told}, Config)


async def test_each_source_has_a_loop(database: str, kafka: str, tmp_path: Path) -> None:
    element = {"site": "A", "ce": "here", "slots": 1}
    files = [{"site": "A", "path": str(tmp_path / name)} for name in ("one.ldif", "two.xml")]
    told = config(tmp_path, database, kafka, elements=[element], files=files)
    async with hosted("advertiser", told, build) as host:
        names = [each.name for each in host._loops]
    assert sorted(names) == ["advertise-file-0", "advertise-file-1", "advertise-machine", "revocations"]


async def test_an_expression_that_is_none_is_refused_at_the_start(
    database: str, kafka: str, tmp_path: Path
) -> None:
    element = {"site": "A", "ce": "here", "slots": 1, "requirements": "other.Memory >="}
    with pytest.raises(Rejected):
        async with hosted("advertiser", config(tmp_path, database, kafka, elements=[element]), build):
            pass
