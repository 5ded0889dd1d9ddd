"""The library behind expressions: lent ads, memory, and a machine without it."""

import gc

import psutil
import pytest

from wms.classad import engine
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import evaluate, satisfied, satisfied_by
from wms.errors import Rejected


def test_without_the_library_texts_are_read_and_evaluation_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "classad2", None)
    engine._library.cache_clear()
    try:
        assert Expression.parse("other.x > 77").names == {"x"}
        with pytest.raises(Rejected, match="htcondor"):
            evaluate(Expression.parse("other.x > 77"), Ad.parse("[x = 1]"))
    finally:
        engine._library.cache_clear()


def test_ads_give_back_what_they_borrowed_and_see_nothing_of_each_other() -> None:
    look = Expression.parse("other.left")
    for number in range(100):
        assert satisfied(look, Ad.parse(f"[right = {number}]")) is False
        assert evaluate(look, Ad.parse(f"[left = {number}; n = [m = left]]")) == number
    gc.collect()
    assert len(engine.Values._spare) <= engine._SPARE


@pytest.mark.slow
def test_a_million_evaluations_and_a_hundred_thousand_ads_leave_no_memory_behind() -> None:
    process = psutil.Process()
    requirements = Expression.parse('other.Memory > 100 && member("b", other.Tags) && other.Fits')
    own = Ad.parse("[Wish = 5]")
    ads = [
        Ad.parse(f'[Memory = {n}; Tags = {{"a", "b"}}; Fits = {"Wish < 7" if n % 10 == 0 else "true"}]')
        for n in range(200)
    ]

    def rounds(count: int) -> None:
        for _ in range(count):
            assert sum(satisfied_by(requirements, ads, own)) == 99

    rounds(100)
    before = process.memory_info().rss
    rounds(5_000)
    assert process.memory_info().rss - before < 4 * 2**20
    for number in range(100_000):
        satisfied(requirements, Ad.of({"Memory": number, "Tags": ["a", "b"], "Fits": True}), own)
    assert process.memory_info().rss - before < 16 * 2**20
