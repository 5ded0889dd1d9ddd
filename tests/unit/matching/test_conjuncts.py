"""Requirements taken apart: all conjuncts together are true where the whole is, and each text is parsed once."""

import gc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.matching.strategies import asks
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import satisfied
from wms.matching.ads import job_attributes, wish
from wms.matching.conjuncts import MOST_TERMS, Term, split_requirements

TERMS = [
    "other.a > 1",
    "other.b",
    "other.c == my.own",
    'other.Site == "A"',
    "2",
    "other.a || other.b",
    "my.own",
]
OWN = "[ own = 1 ]"


def canonical(text: str) -> str:
    return Expression.parse(text).text


@settings(max_examples=100, deadline=None)
@given(
    terms=st.lists(st.sampled_from(TERMS), min_size=1, max_size=5),
    said=st.dictionaries(st.sampled_from("abc"), st.sampled_from([0, 1, 2, True, False, "x"])),
    own=st.sampled_from(["", OWN, "[ own = true ]"]),
)
def test_conjuncts_are_all_true_exactly_where_the_whole_is(terms: list[str], said: Any, own: str) -> None:
    asked = asks(requirements=canonical(" && ".join(terms)), attributes=own and canonical_ad(own))
    job, ad = job_attributes(asked), Ad.of({**said, "Site": "A"})
    whole = satisfied(wish(asked.requirements, job), ad)
    taken = split_requirements(asked.requirements, job)
    assert all(satisfied(each.expression, ad) for each in taken.terms) == whole


def canonical_ad(text: str) -> str:
    return Ad.parse(text).text


def test_a_conjunct_names_what_it_looks_at() -> None:
    job = job_attributes(asks(attributes=canonical_ad(OWN)))
    taken = split_requirements(canonical("other.a > 1 && other.B == my.own"), job)
    assert sorted(sorted(each.names) for each in taken.terms) == [["a"], ["b"]]


def test_very_many_conjuncts_are_kept_as_one() -> None:
    few = " && ".join(f"other.x{n} > 1" for n in range(MOST_TERMS))
    many = f"{few} && other.y > 1"
    job = job_attributes(asks())
    assert len(split_requirements(canonical(few), job).terms) == MOST_TERMS
    assert len(split_requirements(canonical(many), job).terms) == 1


def test_jobs_that_say_the_same_of_what_is_looked_at_share_what_was_taken_apart() -> None:
    text = canonical("other.a > my.own")
    one = job_attributes(asks(owner="ann", attributes=canonical_ad("[ own = 1; else = 7 ]")))
    same = job_attributes(asks(owner="bob", attributes=canonical_ad("[ own = 1; else = 8 ]")))
    other = job_attributes(asks(owner="ann", attributes=canonical_ad("[ own = 2; else = 7 ]")))
    taken = split_requirements(text, one)
    assert split_requirements(text, same) is taken
    assert split_requirements(text, other) is not taken


def test_a_text_is_parsed_once_as_long_as_somebody_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text, job = canonical("other.held > 1"), job_attributes(asks())
    parsed, parse = [], Expression.parse

    def counted(each: str, place: str = "") -> Expression:
        parsed.append(each)
        return parse(each, place)

    monkeypatch.setattr(Expression, "parse", counted)
    held = split_requirements(text, job)
    split_requirements(text, job)
    assert parsed == [text]
    del held
    gc.collect()
    split_requirements(text, job)
    assert parsed == [text] * 2


@pytest.mark.parametrize(
    ("text", "met", "could"),
    [
        ("other.a > 1", False, False),
        ("other.a =?= undefined", True, True),
        ("other.a =!= undefined", False, False),
        ("true", True, True),
    ],
)
def test_over_an_ad_without_its_names_a_term_is_what_it_is_of_undefined(
    text: str, *, met: bool, could: bool
) -> None:
    term = Term(Expression.parse(text))
    assert term.over_nothing(is_sketch=False) == met
    assert term.over_nothing(is_sketch=True) == could
