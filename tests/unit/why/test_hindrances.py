"""What the last plan says against pilots for a job is told for work like it alone."""

from typing import Any

import pytest

from tests.unit.matching.strategies import asks
from tests.unit.why import plan_decisions
from wms.ids import CeId
from wms.provisioning.plan_report import ElementDecision
from wms.why.hindrances import hindrances, in_words


def decision(ce: str, **share: Any) -> ElementDecision:
    return plan_decisions.decision(ce, **{"held": "NO_ROOM", "why": "full", **share})


@pytest.mark.parametrize(
    "other",
    [
        {"vo": "w"},
        {"cpu_segment": 5_000},
        {"processors": 8},
        {"held": ""},
        {"held": "NO_DEMAND"},
        {"held": "BACKOFF"},
    ],
)
def test_only_obstacles_to_work_like_this_count(other: dict[str, Any]) -> None:
    found = hindrances(asks(), [decision("a"), decision("b", **other)])
    assert found == {CeId("A", "a"): "full"}


def test_refused_pilots_are_those_of_jobs_that_request_something() -> None:
    refused = [decision("a", held="BACKOFF", why="backing-off: refused")]
    assert hindrances(asks(requirements="other.GPU"), refused) == {CeId("A", "a"): "backing-off: refused"}


def test_a_text_names_a_few() -> None:
    assert not in_words({})
    found = hindrances(asks(), [decision(name) for name in "abcde"])
    assert in_words(found) == "no more are sent to A/a: full; A/b: full; A/c: full; and 2 more"
