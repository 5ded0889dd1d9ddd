"""What an ad decides of an expression, and what is left of it."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.unit.classad import strategies as texts
from tests.unit.classad.library import OPEN_OTHER, OPEN_OWN, many, read, same, sound
from tests.unit.classad.references import nested
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.folding import is_truth
from wms.classad.match import evaluate
from wms.classad.reduce import decided, reduce
from wms.classad.tree import Call, walk
from wms.classad.value import ERROR, UNDEFINED, RecordText


@pytest.mark.parametrize(("si00", "limit"), [(400, 2000), (500, 2000), (501, 1000), (600, 1000)])
def test_egee_the_benchmark_decides_and_the_limit_is_left(si00: int, limit: int) -> None:
    left = reduce(nested(), Ad.of({"GlueHostBenchmarkSI00": si00}))
    assert str(left) == f"other.GlueCEPolicyMaxCPUTime > {limit}"
    assert left.names == {"gluecepolicymaxcputime"}


@pytest.mark.parametrize(
    ("limit", "left", "outcome"),
    [
        (1500, "other.GlueHostBenchmarkSI00 > 500", None),
        (500, "other.GlueHostBenchmarkSI00 > 500 ? false : false", False),
        (2500, "other.GlueHostBenchmarkSI00 > 500 ? true : true", None),
    ],
)
def test_egee_the_limit_decides_and_the_host_is_left(limit: int, left: str, outcome) -> None:
    found = reduce(nested(), Ad.of({"GlueCEPolicyMaxCPUTime": limit}))
    assert str(found) == left
    assert decided(found) is outcome


def test_egee_the_whole_ad_decides_all(ce: Ad) -> None:
    assert str(reduce(nested(), ce)) == "true"
    assert decided(reduce(nested(), ce)) is True


def test_what_the_ce_says_is_folded_away_and_what_is_about_the_host_is_left(ce: Ad) -> None:
    job = Ad.parse(
        '[Cores = 4; Requirements = other.GlueCEStateStatus == "production" && other.ScratchMB > Cores * 100]'
    )
    assert job.requirements is not None
    left = reduce(job.requirements, ce)
    assert str(left) == "other.ScratchMB > 400"
    assert decided(reduce(job.requirements, Ad.parse('[GlueCEStateStatus = "Closed"]'))) is False


WRITING = frozenset(
    {"string", "strcat", "toupper", "tolower", "strcmp", "stricmp", "versioncmp", "versionge"}
)
"""Functions that take a list for its text."""


def texts_of_composites(node, other, own):
    """Tell whether a text is made of a list or record: it is as that was written, folded or not, and no value to compare."""
    made = (each for each in walk(node) if isinstance(each, Call) and each.function.lower() in WRITING)
    return any(
        isinstance(evaluate(Expression(argument), other, own), tuple | RecordText)
        for each in made
        for argument in each.arguments
    )


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
