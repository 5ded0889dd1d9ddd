"""Our reading, scoping, folding and canonical texts against the library's own; and what nobody in his senses writes."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.classad import strategies as texts
from tests.unit.classad.library import OPEN_OTHER, OPEN_OWN, by_library, many, read, same, sound
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.folding import fold
from wms.classad.match import evaluate, satisfied, satisfied_by
from wms.classad.parsing import parse_expression
from wms.classad.reduce import reduce
from wms.classad.writing import write
from wms.errors import Rejected


@many
@given(texts.closed)
def test_what_we_read_has_the_value_that_the_library_reads(text) -> None:
    value = by_library(text)
    assert same(evaluate(read(text), Ad(())), value)
    assert same(by_library(write(fold(parse_expression(text)))), value)


@many
@given(texts.open_, texts.ads(texts.OWN), texts.ads(texts.OTHER))
def test_scopes_are_the_librarys(text, own, other) -> None:
    own, other = texts.ad_text(own), texts.ad_text(other)
    expected = by_library(text, own, other)
    found = evaluate(read(text), Ad.parse(other), Ad.parse(own))
    assert same(found, expected)
    bound = Ad.parse(own).bind(read(text))
    assert satisfied(bound, Ad.parse(other), Ad.parse(own)) is (found is True)
    assert satisfied_by(bound, [Ad.parse(other)], Ad.parse(own)) == [found is True]


@many
@given(texts.open_, OPEN_OWN, OPEN_OTHER)
def test_ads_that_look_at_each_other_do_so_as_in_the_library(text, own, other) -> None:
    own, other = texts.ad_text(own), texts.ad_text(other)
    expected = by_library(text, own, other)
    assert same(evaluate(read(text), sound(other), sound(own)), expected)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(), st.randoms(use_true_random=False).map(texts.soup)))
def test_any_text_is_refused_with_its_place_or_has_a_value(text) -> None:
    survive(text)


def survive(text: str) -> None:
    """Read a text as all it could be, and evaluate what was read."""
    ad = Ad.of({"a": 1, "b": "x" * 50})
    try:
        expression = Expression.parse(text, "here")
        evaluate(expression, ad, ad)
        reduce(expression, ad)
        Expression.parse(expression.text)
    except Rejected as refusal:
        told(refusal, "here")
    try:
        found = Ad.parse(text, "there")
        assert Ad.parse(found.text) == found
        evaluate(Expression.parse("other.a && MY.a || other.b"), found, found)
    except Rejected as refusal:
        told(refusal, "there")


def told(refusal: Rejected, place: str) -> None:
    assert refusal.code.startswith("CLASSAD_")
    assert refusal.message.startswith((place, "attribute")), refusal


@pytest.mark.slow
@pytest.mark.timeout(1_000)
def test_two_hundred_thousand_soups_crash_nothing_and_take_little_time_and_memory() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    outcome = subprocess.run(
        [sys.executable, "-m", "tests.unit.classad.test_fuzz", "200000"],
        env=environment, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert outcome.returncode == 0, outcome.stderr[-2_000:]


def main(runs: int) -> None:
    """Survive so many soups in this process, each in less than a second, and all within 400 MB."""
    import time

    import psutil

    # Others each time, but where a change is judged: it answers for itself, not for the luck of the draw.
    seed = 1 if os.environ.get("CI") else random.SystemRandom().randrange(2**32)
    rng = random.Random(seed)
    for number in range(runs):
        text = texts.soup(rng)
        began = time.process_time()
        try:
            survive(text)
        except BaseException:
            print(f"seed {seed}, soup {number}: {text[:2000]!r}", file=sys.stderr)
            raise
        took = time.process_time() - began
        assert took < 1.0, (took, seed, number, text[:2000])
    assert psutil.Process().memory_info().rss < 400 * 2**20, psutil.Process().memory_info()


if __name__ == "__main__":
    main(int(sys.argv[1]))
