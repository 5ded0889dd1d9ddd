"""How long a job can run follows from its limits."""

import pytest

from tests.unit.broker.examples import job


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        ({}, None),
        ({"cpu_seconds": 8000.0, "processors": 4}, 2000.0),
        ({"cpu_seconds": 8000.0, "wall_seconds": 900.0}, 900.0),
        ({"wall_seconds": 900.0}, 900.0),
    ],
)
def test_the_tighter_limit_counts(limits: dict[str, float], seconds: float | None) -> None:
    assert job(**limits).run_limit == seconds
