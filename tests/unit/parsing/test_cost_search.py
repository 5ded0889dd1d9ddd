"""No document of up to 10 kB takes more than 5 ms a kB and 32 MiB at any entrance, as far as a search of ten thousand finds."""

import json

import pytest

from tests.hostile.cost_search import search
from tests.hostile.entrances import Entrance
from wms.jobdesc.expansion import Expansion
from wms.jobdesc.series import expanded

SEED = 27


@pytest.mark.timeout(600)
@pytest.mark.parametrize("documents", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_document_is_too_dear(documents: int) -> None:
    dear = [each for each in search(documents, SEED) if each.dearest.ratio > 1]
    assert not dear, [f"{each.entrance.name}: {each.dearest}" for each in dear]


def test_a_reader_that_expands_before_it_judges_is_found() -> None:
    def eager(document: bytes) -> None:
        expanded(json.loads(document), Expansion(values=10**9, size=10**11))

    few = b'{"executable":"x","array":100000,"parameters":{"p0":{"start":0,"step":1}}}'
    (climb,) = search(0, SEED, [Entrance("eager", eager, (few,))])
    assert climb.dearest.ratio > 1


def test_the_search_climbs_to_what_is_slow() -> None:
    def slow_with_brackets(document: bytes) -> None:
        # Not more, or the search itself takes minutes.
        for _ in range(min(1_000, document.count(b"(")) ** 2):
            pass

    (climb,) = search(400, SEED, [Entrance("slow", slow_with_brackets, (b"(a)",))])
    assert climb.dearest.document.count(b"(") > 300
