"""Canonical texts against the library's reading of them."""

from hypothesis import given

from tests.unit.classad import strategies as texts
from tests.unit.classad.library import by_library, many, read, same
from wms.classad.expression import Expression


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
