"""Tables of parameters: what a spreadsheet writes is read, and what is wrong is refused with its line."""

import pytest

from wms.cli.parameter_table import read_table
from wms.errors import Rejected


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("a,b\n1,2\n3,4\n", {"a": ("1", "3"), "b": ("2", "4")}),
        ("\ufeffa, b\r\n1,\r\n,4", {"a": ("1", ""), "b": ("", "4")}),
        ('a,b\r\n"x, ""y""",z\r\n', {"a": ('x, "y"',), "b": ("z",)}),
        ('a\n"two\r\nlines"\n', {"a": ("two\r\nlines",)}),
    ],
)
def test_what_spreadsheets_write_is_read(text: str, columns: dict[str, tuple[str, ...]]) -> None:
    assert read_table(text, "t.csv") == columns


def test_a_table_with_tabs_is_one() -> None:
    assert read_table("a\tb\n1,5\t2\n", "t.tsv") == {"a": ("1,5",), "b": ("2",)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "t.csv is empty"),
        ("a,b\n", "no line with values"),
        ("a,b\n1,2\n\n3,4\n", "line 3: is blank"),
        ("a,b\n1,2\n , \n", "line 3: is blank"),
        ("a\n1\n\n", "line 3: is blank"),
        ('a,b\n"x\ny",2\n1\n', "line 4: has 1 cell, and there are 2 names"),
        ('a\n"x\n', "line 2: cannot be read"),
        ("a,a\n1,2\n", "line 1: names a twice"),
        ("n\n1\n", 'line 1: "n" is no name'),
        ("1,2\n3,4\n", 'line 1: "1" is no name'),
        (",".join(f"p{n}" for n in range(21)) + "\n", "line 1: has 21 names"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(Rejected, match="BAD_TABLE") as refusal:
        read_table(text, "t.csv")
    assert said in refusal.value.message
    assert refusal.value.remedy
