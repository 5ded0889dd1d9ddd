"""A few crashes of a whole system over two real Slurm clusters; `python -m tests.testbed.agreement` does many."""

import pytest

from tests.middleware import Sites
from tests.testbed.agreement.system_crashes import system_crashes

pytestmark = [
    pytest.mark.testbed,
    pytest.mark.slow,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(900),
]


async def test_no_reservation_outlives_its_time_and_pairs_run_together(testbed: Sites) -> None:
    async with system_crashes(testbed, seed=20_261_125) as run:
        report = await run.run(16)
    assert report.seen, report.text()
    assert report.pairs, report.text()
    assert not report.apart, report.text()
    assert not report.left, report.text()
    assert report.audit == "ok", report.text()
