"""What the broker is told: the reasons of failed placements are the codes of the state table."""

from tests.unit.messages.examples import FULL
from wms.broker.placement import PlacementFault


def test_the_example_names_a_reason_that_there_is() -> None:
    assert FULL["placement-failed"].code in set(PlacementFault)  # type: ignore[attr-defined]
