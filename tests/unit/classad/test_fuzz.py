"""Our reading, scoping, folding and canonical texts against the library's own; and what nobody in his senses writes."""

import itertools
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import classad2
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.classad import strategies as texts
from wms.classad import engine
from wms.classad.ad import Ad
from wms.classad.explain import explain
from wms.classad.expression import Expression
from wms.classad.folding import fold, is_truth
from wms.classad.match import evaluate, satisfied, satisfied_by
from wms.classad.parsing import parse_expression
from wms.classad.reduce import decided, reduce
from wms.classad.tree import Call, walk
from wms.classad.value import ERROR, UNDEFINED, RecordText
from wms.classad.writing import write
from wms.errors import Rejected

WRITING = frozenset(
    {"string", "strcat", "toupper", "tolower", "strcmp", "stricmp", "versioncmp", "versionge"}
)
"""Functions that take a list for its text."""

many = settings(max_examples=100, deadline=None)


def by_library(text, own="[]", other="[]"):
    """Evaluate a text as the library reads and scopes it."""
    ads = classad2.ClassAd(own), classad2.ClassAd(other)
    try:
        tree = classad2.ExprTree(text)
    except classad2.ClassAdException:
        with pytest.raises(Rejected):
            Expression.parse(text)
        return assume(False)
    return engine.value(engine.evaluate(tree, *ads), lambda each: engine.evaluate(each, *ads))


def same(one, two):
    if isinstance(one, RecordText) and isinstance(two, RecordText):
        # Texts of records are as they were written, with or without what was put into them.
        return True
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(itertools.starmap(same, zip(one, two, strict=True)))
    if isinstance(one, float) and isinstance(two, float) and math.isnan(one):
        return math.isnan(two)
    return type(one) is type(two) and one == two


def texts_of_composites(node, other, own):
    """Tell whether a text is made of a list or record: it is as that was written, folded or not, and no value to compare."""
    made = (each for each in walk(node) if isinstance(each, Call) and each.function.lower() in WRITING)
    return any(
        isinstance(evaluate(Expression(argument), other, own), tuple | RecordText)
        for each in made
        for argument in each.arguments
    )


def read(text):
    try:
        return Expression.parse(text)
    except Rejected:
        assume(False)
        raise


def sound(text):
    try:
        return Ad.parse(text)
    except Rejected as refusal:
        # What grows too large, `self` in a record, or a membership in another's list is refused; all else must be read.
        if not any(code in refusal.code for code in ("_TOO_", "_SCOPE", "_FUNCTION")):
            raise
        assume(False)
        raise


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


OPEN_OWN = st.fixed_dictionaries(
    {
        "a": texts.trees(st.one_of(texts.literals, st.sampled_from(["TARGET.x", "cee", "other.zed"]))),
        "cee": texts.values,
    }
)
OPEN_OTHER = st.fixed_dictionaries(
    {
        "x": texts.values,
        "Y": texts.trees(st.one_of(texts.literals, st.sampled_from(["TARGET.cee", "x", "MY.Tags"]))),
        "zed": texts.trees(st.one_of(texts.literals, st.sampled_from(["x", "self.x"]))),
        "Tags": st.one_of(texts.values, st.just("[k = TARGET.cee; x = 5; y = x]")),
    }
)


@many
@given(texts.open_, OPEN_OWN, OPEN_OTHER)
def test_ads_that_look_at_each_other_do_so_as_in_the_library(text, own, other) -> None:
    own, other = texts.ad_text(own), texts.ad_text(other)
    expected = by_library(text, own, other)
    assert same(evaluate(read(text), sound(other), sound(own)), expected)


@many
@given(texts.open_, texts.ads(texts.OWN), texts.ads(texts.OTHER))
def test_canonical_texts_have_the_same_value_and_are_their_own(text, own, other) -> None:
    expression = read(text)
    again = Expression.parse(expression.text)
    assert again.text == expression.text
    assert again.names == expression.names
    for each in (again.text, str(expression)):
        pair = texts.ad_text(own), texts.ad_text(other)
        assert same(by_library(each, *pair), by_library(text, *pair))


@many
@given(texts.open_, texts.ads(texts.OWN), texts.ads(texts.OTHER), st.sets(st.sampled_from(texts.OTHER)))
def test_what_is_left_has_the_value_of_the_whole(text, own, other, known) -> None:
    own, whole = Ad.parse(texts.ad_text(own)), Ad.parse(texts.ad_text(other))
    part = Ad.parse(texts.ad_text({name: value for name, value in other.items() if name in known}))
    assume(not texts_of_composites(read(text).tree, whole, own))
    left = reduce(read(text), part, own)
    value = evaluate(read(text), whole, own)
    assert same(evaluate(left, whole, own), value)
    assert not left.other & {name.lower() for name in part.names}
    assert decided(left) in {None, value is True}
    if is_truth(left.tree):
        assert value in {True, False, UNDEFINED, ERROR}


@many
@given(texts.open_, OPEN_OWN, OPEN_OTHER)
def test_what_an_open_ad_leaves_has_the_value_of_the_whole(text, own, other) -> None:
    own, other = sound(texts.ad_text(own)), sound(texts.ad_text(other))
    assume(not texts_of_composites(read(text).tree, other, own))
    assert same(evaluate(reduce(read(text), other, own), other, own), evaluate(read(text), other, own))


@many
@given(texts.open_, texts.ads(texts.OWN), texts.ads(texts.OTHER))
def test_an_explanation_agrees_with_the_match(text, own, other) -> None:
    own, other = sound(texts.ad_text(own)), sound(texts.ad_text(other))
    terms = explain(read(text), other, own)
    assert all(term.met for term in terms) is (evaluate(read(text), other, own) is True)
    for term in terms:
        str(term)


VALUES = ("true", "false", "undefined", "error", "1", "0", "2.5", '"a"', "{}", "[]")


@pytest.mark.parametrize("operator", ["&&", "||"])
def test_chains_are_associative_so_that_they_may_be_one_node(operator) -> None:
    for a, b, c in itertools.product(VALUES, repeat=3):
        left, right = f"({a} {operator} {b}) {operator} {c}", f"{a} {operator} ({b} {operator} {c})"
        assert same(by_library(left), by_library(right))


@pytest.mark.parametrize("operator", ["&&", "||"])
def test_what_is_folded_of_chains_and_choices_has_the_librarys_value(operator) -> None:
    for value in VALUES:
        other = f"[x = {value}; y = true]"
        for text in (
            *(f"TARGET.x {operator} {constant}" for constant in VALUES),
            *(f"{constant} {operator} TARGET.x {operator} TARGET.y" for constant in VALUES),
            *(f"{constant} ? TARGET.x : TARGET.y" for constant in VALUES),
            *(f"{constant} ?: TARGET.x" for constant in VALUES),
            "TARGET.x == 1 ? true : false",
            "TARGET.x == 1 ? 1 : 0",
            "TARGET.x ? true : false",
        ):
            folded = write(fold(parse_expression(text)))
            assert same(
                by_library(folded.replace("other.", "TARGET."), "[]", other), by_library(text, "[]", other)
            ), text


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
