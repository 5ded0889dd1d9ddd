"""What an evaluation may cost: costly ones are errors, and none hangs."""

from tests.unit.classad.references import value
from wms.classad.ad import Ad
from wms.classad.explain import explain, failing
from wms.classad.expression import Expression
from wms.classad.limits import TEXT_BYTES
from wms.classad.match import evaluate, satisfied
from wms.classad.value import ERROR


def test_ads_that_look_at_each_other_in_a_circle_or_too_often_are_errors() -> None:
    assert value("other.a", "[a = other.b]", "[b = other.a]") is ERROR
    one = "[" + "; ".join(f"a{n} = other.b{n} + other.b{n}" for n in range(60)) + "]"
    two = "[" + "; ".join(f"b{n} = other.a{n + 1} + other.a{n + 1}" for n in range(60)) + "]"
    expression = Expression.parse("other.a0 > 1 && other.x")
    assert evaluate(expression, Ad.parse(one), Ad.parse(two)) is ERROR
    assert not satisfied(expression, Ad.parse(one), Ad.parse(two))
    (first, _) = explain(expression, Ad.parse(one), Ad.parse(two))
    assert "look at each other" in first.note


def test_a_large_value_of_the_other_ad_makes_a_costly_expression_an_error_not_a_hang() -> None:
    slow = Expression.parse('regexp("x*y*v", other.s)')
    assert evaluate(slow, Ad.of({"s": "x" * 30})) is False
    assert evaluate(slow, Ad.of({"s": "x" * 60_000})) is ERROR
    twice = Expression.parse("size(strcat(other.s, other.s))")
    assert evaluate(twice, Ad.of({"s": "x" * 10_000})) == 20_000
    assert evaluate(twice, Ad.of({"s": "x" * 60_000})) is ERROR


def test_a_thousand_names_side_by_side_are_evaluated() -> None:
    text = " || ".join(f'other.CEid == "ce{n}"' for n in range(1_000))
    requirements = Expression.parse(text)
    assert [satisfied(requirements, Ad.of({"CEid": name})) for name in ("ce0", "CE999", "ce1000")] == [
        True,
        True,
        False,
    ]
    assert len(text) < TEXT_BYTES


def test_long_requirements_and_lists_cost_what_they_are() -> None:
    own = Ad.of({"Requirements": Expression.parse(" && ".join(f"other.a{n} < 1" for n in range(1_200)))})
    other = Ad.of({f"a{n}": 0 for n in range(700)})
    assert len(failing(own, other)) == 500
    assert value("member(7000, other.l) && sum(other.l) > 0", Ad.of({"l": list(range(7_500))}).text) is True
