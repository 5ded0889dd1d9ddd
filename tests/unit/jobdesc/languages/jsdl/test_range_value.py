import pytest
from lxml import etree

from wms.jobdesc.languages.jsdl.range_value import ValueRange, range_of


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("", None, None),
        ("<Exact>4</Exact>", 4, 4),
        ("<Exact epsilon='1'>4</Exact>", 3, 5),
        ("<Exact>4</Exact><Exact>8</Exact>", 4, 8),
        ("<LowerBoundedRange exclusiveBound='true'>4</LowerBoundedRange>", 5, None),
        ("<UpperBoundedRange exclusiveBound='1'>4</UpperBoundedRange>", None, 3),
        (
            "<Range><LowerBound>1</LowerBound><UpperBound>2</UpperBound></Range><LowerBoundedRange>9</LowerBoundedRange>",
            1,
            None,
        ),
    ],
)
def test_a_range_spans_its_parts(text: str, least: float | None, most: float | None) -> None:
    assert range_of(etree.fromstring(f"<a>{text}</a>")) == ValueRange(least, most)


@pytest.mark.parametrize("number", ["INF", "NaN", "", "x", "1e300", "1_0"])
def test_what_is_no_finite_number_is_refused(number: str) -> None:
    with pytest.raises(ValueError, match="number"):
        range_of(etree.fromstring(f"<a><Exact>{number}</Exact></a>"))


def test_an_empty_range_is_refused() -> None:
    text = "<a><Range><LowerBound>3</LowerBound><UpperBound>2</UpperBound></Range></a>"
    with pytest.raises(ValueError, match="no number"):
        range_of(etree.fromstring(text))
