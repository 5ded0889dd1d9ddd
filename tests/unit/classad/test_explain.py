"""Explanations of a match: which terms failed, and what they saw."""

from hypothesis import given

from tests.unit.classad import strategies as texts
from tests.unit.classad.library import many, read, sound
from wms.classad.ad import Ad
from wms.classad.explain import explain, failing
from wms.classad.expression import Expression
from wms.classad.match import evaluate


def test_an_explanation_names_what_failed_and_what_it_saw() -> None:
    job = Ad.parse('[Wish = 4; Requirements = other.Cpus >= Wish && other.OS == "linux" && other.Fast]')
    resource = Ad.parse('[Cpus = 2; OS = "Linux"; Fast = 1]')
    (cpus,) = failing(job, resource)
    assert str(cpus) == "other.Cpus >= Wish is false where Wish = 4, other.Cpus = 2"
    assert [
        term.met for term in explain(job.expression("Requirements") or Expression.parse("0"), resource, job)
    ] == [
        False,
        True,
        True,
    ]
    assert failing(resource, job) == ()


def test_an_explanation_says_that_a_number_is_not_true_and_that_nothing_is_known() -> None:
    (alone,) = failing(Ad.parse("[Requirements = other.Fast]"), Ad.parse("[Fast = 1]"))
    assert (
        str(alone) == "other.Fast is 1; a number is not true: compare it with something where other.Fast = 1"
    )
    (missing,) = failing(Ad.parse("[Requirements = other.Fast]"), Ad.parse("[]"))
    assert str(missing) == "other.Fast is undefined where other.Fast = undefined"


@many
@given(texts.open_, texts.ads(texts.OWN), texts.ads(texts.OTHER))
def test_an_explanation_agrees_with_the_match(text, own, other) -> None:
    own, other = sound(texts.ad_text(own)), sound(texts.ad_text(other))
    terms = explain(read(text), other, own)
    assert all(term.met for term in terms) is (evaluate(read(text), other, own) is True)
    for term in terms:
        str(term)
