"""No text of a payload, a user or a site can move a cursor, forge a line or turn a name around."""

import pytest

from wms.printed_text import escaped, one_line, printed


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("e\x1b[31m", "e\\x1b[31m"),
        ("a\nDone 1 job", "a Done 1 job"),
        ("gnp.\u202eexe", "gnp.\\u202eexe"),
        ("a\u2028b", "a b"),
        ("größer 漢字", "größer 漢字"),
    ],
)
def test_a_reason_is_one_line_without_unsafe_characters(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_long_reason_is_cut_after_its_characters_are_escaped() -> None:
    assert one_line("\x00" * 300, 500) == "\\x00" * 124 + "\\x0…"


def test_what_a_program_printed_keeps_its_lines_and_loses_its_colours() -> None:
    assert printed("\x1b[1;31mred\x1b[0m\tx\r\n10%\r20%\n") == "red\tx\n10%\n20%\n"


@pytest.mark.parametrize("unsafe", ["\x1b]0;title\x07", "\x9b2J", "\x08", "\u2066", "\u200f", "\U000e0041"])
def test_other_unsafe_characters_are_escaped(unsafe: str) -> None:
    assert escaped(f"a{unsafe}b").isprintable()
    assert printed(f"a{unsafe}b").isprintable()


def test_joined_characters_of_scripts_and_pictures_stay() -> None:
    joined = "\u0645\u06cc\u200c\u062e \U0001f469\u200d\U0001f52c"
    assert printed(joined) == joined
