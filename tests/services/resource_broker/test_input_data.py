"""Input data restrict jobs to sites that hold all of them, where the catalogue and the ads tell."""

import json
from pathlib import Path

from tests.services.brokers import BrokerWorld
from tests.services.world import World

CATALOGUE = {
    "lfn:/a": ["https://se1.example.org/a", "https://se2.example.org/a"],
    "lfn:/b": ["https://se2.example.org/b"],
    "lfn:/tape": ["https://tape.example.org/c"],
}


async def _at(world: World, place: Path, *names: str) -> str:
    """Return the site where a job with these inputs is placed, of two with storage of their own; the first is preferred."""
    catalogue = place / "catalogue.json"
    catalogue.write_text(json.dumps(CATALOGUE))
    brokers = BrokerWorld(world, catalogue=str(catalogue))
    await brokers.advertise(
        "A", slots=8, GlueCEStateFreeJobSlots=8, GlueCESEBindGroupSEUniqueID="se1.example.org"
    )
    await brokers.advertise(
        "B",
        slots=8,
        GlueCEStateFreeJobSlots=0,
        GlueCEStateWaitingJobs=99,
        GlueCESEBindGroupSEUniqueID="se2.example.org",
    )
    inputs = [{"name": str(n), "sources": [name]} for n, name in enumerate(names)]
    (job_id,) = await brokers.submitted(inputs=inputs)
    await brokers.step()
    (placed,) = await brokers.placements(job_id)
    return placed.site


async def test_a_job_goes_where_all_its_input_data_are(the_world: World, tmp_path: Path) -> None:
    assert await _at(the_world, tmp_path, "lfn:/a") == "A"
    assert await _at(the_world, tmp_path, "lfn:/a", "lfn:/b") == "B"


async def test_input_data_that_are_near_nobody_restrict_nothing(the_world: World, tmp_path: Path) -> None:
    for name in ("lfn:/tape", "lfn:/unknown", "https://se2.example.org/b"):
        assert await _at(the_world, tmp_path, name) == "A"


async def test_a_catalogue_that_cannot_be_read_restricts_nothing(the_world: World) -> None:
    brokers = BrokerWorld(the_world, catalogue="/nonexistent")
    await brokers.advertise("A", GlueCESEBindGroupSEUniqueID="se1.example.org")
    (job_id,) = await brokers.submitted(inputs=[{"name": "b", "sources": ["lfn:/b"]}])
    await brokers.step()
    assert len(await brokers.placements(job_id)) == 1
