"""Canonical texts against the library's reading of them."""

import re

from hypothesis import assume, given

from tests.unit.classad import strategies as texts
from tests.unit.classad.library import by_library, many, read, same
from wms.classad.expression import Expression

_SHOWS = re.compile(r"strcat|string\(|toupper|strcmp|stricmp|version", re.IGNORECASE)


def shows_a_list(text: str) -> bool:
    """Return whether a list may become text there: the library shows it as it was written, with all its parentheses."""
    return "{" in text and _SHOWS.search(text) is not None


def test_a_list_as_text_shows_the_parentheses_of_its_expression_alone() -> None:
    text = "strcat({(0) + (0)})"
    assert (by_library(text), by_library(read(text).text)) == ("{ (0) + (0) }", "{ 0 + 0 }")


@many
@given(texts.open_, texts.ads(texts.OWN), texts.ads(texts.OTHER))
def test_canonical_texts_have_the_same_value_and_are_their_own(text, own, other) -> None:
    assume(not shows_a_list(text))
    expression = read(text)
    again = Expression.parse(expression.text)
    assert again.text == expression.text
    assert again.names == expression.names
    for each in (again.text, str(expression)):
        pair = texts.ad_text(own), texts.ad_text(other)
        assert same(by_library(each, *pair), by_library(text, *pair))
