"""The grammar of expressions: what is read, and what is refused at which place."""

import pytest

from tests.unit.classad.references import value
from wms.classad.expression import Expression
from wms.classad.limits import DEPTH, NODES
from wms.errors import Rejected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'"\303\251\101\\\"\t"', 'éA\\"\t'), ("-9223372036854775808", -(2**63)), ("- -1", 1), ("1e3", 1000.0),
        (".5", 0.5), ("5 ?: 1 * 2", 10), ("1 + undefined ?: 2", 3), ("{1, 2}[1]", 2), ("[a = 1; b = a].b", 1),
        ("'a b' ?: 3", 3), ("1 < 2 == true", True), ("7 & 3 + 1", 4), ("2 - 1 - 1", 0),
    ],
)  # fmt: skip
def test_what_is_read(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("1] [x=2", "SYNTAX", "line 1, column 2: the text goes on"),
        ("true &&\n  (x >", "SYNTAX", "line 2, column 7: the text ends too early"),
        ("99999999999999999999", "OVERFLOW", "line 1, column 1"),
        ("1e999", "OVERFLOW", "column 1"),
        ('other.Site = "a"', "SYNTAX", "compare with `==`"), ("(x = 1)", "SYNTAX", "compare with `==`"),
        ("0x10", "SYNTAX", "goes on with letters"), ("1K", "SYNTAX", "goes on with letters"),
        ("010", "SYNTAX", "must not begin with 0"), ('"a', "SYNTAX", "does not end"), ("/* a", "SYNTAX", "does not end"),
        ('"\\377"', "TEXT", "UTF-8"), ('"\\0"', "TEXT", "code 0"), ('"\\q"', "SYNTAX", "escape"),
        ('"\udcff"', "TEXT", "surrogate"), ("a\0b", "TEXT", "code 0"), ("é", "SYNTAX", "é"),
        ("TARGET", "SCOPE", "full stop"), ("other.MY.x", "NAME", "MY"), (".a", "SYNTAX", "full stop"),
        ("[a = self.b]", "SCOPE", "record"), ("CurrentTime > 5", "NAME", "CurrentTime"), ("parent.x", "NAME", "parent"),
        ("time() > 5", "FUNCTION", "time"), ('eval("1")', "FUNCTION", "eval"), ("size()", "FUNCTION", "0 arguments"),
        ("regexp(x, y)", "PATTERN", "written down"), ('regexp("(a+)+$", x)', "PATTERN", "repeat"),
        ('regexp("(a|aa)*b", x)', "PATTERN", "repeat"), (r'regexp("(a)\\1", x)', "PATTERN", "must not have"),
        ('regexp("(?=a)", x)', "PATTERN", "must not have"), ('regexp("a", x, "x")', "PATTERN", "option"),
        ('regexp("a*b*c*d*e*", x)', "PATTERN", "5 repeats"), ('regexp("(a", x)', "PATTERN", "bracket"),
        ("(" * 100 + "1" + ")" * 100, "TOO_DEEP", "levels"), ("!" * 100 + "true", "TOO_DEEP", "row"),
        ("1" + "+1" * 100, "TOO_DEEP", "row"), ("{" * 100 + "}" * 100, "TOO_DEEP", "levels"),
        ("[a=" * 20 + "1" + "]" * 20, "TOO_DEEP", "records"), ("[a = 1; A = 2]", "TWICE", "twice"),
        ("true&&" * 200_000 + "true", "TOO_LONG", "bytes"), ("{" + "1," * NODES + "1}", "TOO_LARGE", "10,000"),
    ],
)  # fmt: skip
def test_what_is_refused_is_so_with_its_place(text: str, code: str, said: str) -> None:
    with pytest.raises(Rejected) as refused:
        Expression.parse(text, "Requirements")
    assert refused.value.code == f"CLASSAD_{code}"
    assert refused.value.message.startswith("Requirements")
    assert said in refused.value.message


def readable(text: str) -> Expression | None:
    """Return an expression, if it is not nested too deep."""
    try:
        return Expression.parse(text)
    except Rejected as refusal:
        if refusal.code != "CLASSAD_TOO_DEEP":
            raise
        return None


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("!", ""),
        ("- ", ""),
        ("-(a+", ")"),
        ("a[", "]"),
        ("a?", ":b"),
        ("a?b:", ""),
        ("size({", "})"),
        ("(a && ", ")"),
        ("(", "?:a)"),
    ],
)
def test_what_is_nested_as_deep_as_may_be_is_written_so_that_it_can_be_read(
    opening: str, closing: str
) -> None:
    deep = [opening * depth + "-5" + closing * depth for depth in range(1, DEPTH + 2)]
    read = [expression for each in deep if (expression := readable(each)) is not None]
    assert 20 < len(read) < len(deep)
    assert [Expression.parse(each.text) for each in read] == read
