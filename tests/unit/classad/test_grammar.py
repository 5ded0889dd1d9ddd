"""The words of the language: which names an attribute may have, and which operator binds closer."""

import pytest

from wms.classad.expression import Expression
from wms.classad.grammar import LEVELS, RESERVED, name_checked
from wms.classad.limits import NAME_LENGTH
from wms.errors import Rejected


@pytest.mark.parametrize("name", ["a", "Memory", "GlueCEStateFreeJobSlots", "with blanks", "x" * NAME_LENGTH])
def test_a_name_is_taken_as_it_is(name: str) -> None:
    assert name_checked(name, "here") == name


@pytest.mark.parametrize(
    "name", ["", "x" * (NAME_LENGTH + 1), "caf\u00e9", "a\nb", *sorted(RESERVED), "OTHER", "True"]
)
def test_a_word_of_the_language_or_a_name_that_cannot_be_printed_is_refused(name: str) -> None:
    with pytest.raises(Rejected, match="here"):
        name_checked(name, "here")


@pytest.mark.parametrize("looser", LEVELS)
@pytest.mark.parametrize("closer", LEVELS)
def test_an_operator_of_a_higher_level_binds_closer(looser: str, closer: str) -> None:
    if LEVELS[looser] >= LEVELS[closer]:
        return
    plain = Expression.parse(f"a {looser} b {closer} c")
    assert plain.text == Expression.parse(f"a {looser} (b {closer} c)").text
    assert plain.text != Expression.parse(f"(a {looser} b) {closer} c").text


@pytest.mark.parametrize("operator", LEVELS)
def test_operators_of_one_level_bind_to_the_left(operator: str) -> None:
    assert (
        Expression.parse(f"a {operator} b {operator} c").text
        == Expression.parse(f"(a {operator} b) {operator} c").text
    )
