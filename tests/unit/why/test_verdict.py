"""Verdicts of elements on a queue, counted by clause."""

from tests.unit.matching.strategies import asks
from tests.unit.why.elements import place
from wms.why.verdict import failures, verdicts


def test_failures_are_counted_by_clause() -> None:
    wanted = asks(tags=("gpu",), min_ram_mb=1)
    said = verdicts(wanted, [place(), place("big", memory_mb=1), place("x", memory_mb=5)])
    assert failures(said) == {"tags": 3, "memory": 1}
