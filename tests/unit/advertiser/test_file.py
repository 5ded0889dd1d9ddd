"""The provider of files: GLUE in its formats, one ad, and files that change."""

from pathlib import Path

import pytest

from services.advertiser.config import FileSettings
from services.advertiser.file import FileProvider
from wms.errors import Unavailable

GLUE_DATA = Path(__file__).parents[2] / "data" / "glue"


async def test_a_file_tells_of_its_elements_and_may_change(tmp_path: Path):
    path = tmp_path / "site.ldif"
    provider = FileProvider(FileSettings(site="EXAMPLE-T2", path=str(path), dispatcher="arc"))
    with pytest.raises(Unavailable):
        await provider.read()
    path.write_bytes((GLUE_DATA / "bdii.ldif").read_bytes())
    [seen] = await provider.read()
    assert (seen.offer.site, seen.offer.ce, seen.offer.slots) == ("EXAMPLE-T2", "long", 96)
    assert seen.offer.dispatcher == "arc"
    path.write_bytes((GLUE_DATA / "arc.ldif").read_bytes())
    assert [each.offer.ce for each in await provider.read()] == ["main", "short"]


@pytest.mark.parametrize("name", ["arc.xml", "arc.json"])
async def test_files_of_glue_2(name: str):
    provider = FileProvider(FileSettings(site="s", path=str(GLUE_DATA / name), queues=["short"]))
    [seen] = await provider.read()
    assert (seen.offer.ce, seen.offer.max_cpu_time, seen.offer.vos) == ("short", 1_800, ("celab",))


async def test_a_file_with_one_ad(tmp_path: Path):
    provider = FileProvider(FileSettings(site="s", path=str(GLUE_DATA / "glite.ad"), tags=["old"]))
    [seen] = await provider.read()
    assert (seen.offer.ce, seen.offer.slots, seen.offer.max_cpu_time) == ("infinite", 1, 86_400)
    assert seen.offer.tags == ("APP1", "GLITE_1_2", "old")
