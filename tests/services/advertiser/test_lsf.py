"""LSF as the advertiser reads it, against a fake of its tools."""

from pathlib import Path

from tests.services.advertiser.batch_systems import lsf, slots


async def test_lsf_queues_are_elements_each_with_its_hosts(tmp_path: Path, data: Path) -> None:
    found = await slots(lsf(tmp_path, data, max_cpu_time=3_600))
    assert found == {"normal": (28, 8), "short": (6, 1), "night": (24, 6), "admin": (0, 8)}
