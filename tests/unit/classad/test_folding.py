"""Folding: what is folded has the value that the library gives to the whole."""

import itertools

import pytest

from tests.unit.classad.library import by_library, same
from wms.classad.folding import fold
from wms.classad.parsing import parse_expression
from wms.classad.writing import write

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
