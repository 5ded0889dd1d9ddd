"""Columns: what is told of a list without looking at each text is never better than what is true of it."""

import re
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wms.jobdesc import JobDescription, column
from wms.jobdesc.validation import validate

VALUE = st.text(st.sampled_from('aZ0._-/ ,[]"\\\u00e9\u202e\n\x00\x7f'), max_size=6) | st.just("w" * 300)
WORDS = st.text(st.sampled_from("aZ0._-"), max_size=4)
VALUES = st.lists(VALUE, min_size=1, max_size=8)
# What JSON is made of, in any order: most of it is none.
PIECES = st.lists(
    st.sampled_from(['"', ",", '","', '["', '"]', "a", " ", "[", "]", "\\", "\\u0000", "\n", "\u00e9", "1"]),
    max_size=14,
).map(lambda pieces: "".join(pieces).encode())
WHERE = st.sampled_from(["{x}", "out-{x}", "{x}" * 3, "plain"])


def of(values: list[str], **more: Any) -> JobDescription:
    return JobDescription(executable="true", parameters={"x": tuple(values)}, **more)


def wrong(description: JobDescription) -> set[tuple[str, str]]:
    """Return what is wrong, without the values and where they are."""
    return {
        (each.place.partition("[")[0], re.split('"| character ', each.message)[0])
        for each in validate(description)
    }


@given(PIECES | PIECES.map(lambda raw: b'["' + raw + b'"]') | st.binary(max_size=12))
@example(b'[","a"b"]')
@example(b'["]')
@example(b'["\xc3\xa9"]')
def test_what_is_told_to_be_printed_is_so_many_printable_texts(raw: bytes) -> None:
    count = column.printed(raw)
    if count:
        texts = msgspec.json.decode(raw, type=list[str])
        assert len(texts) == count
        assert all(text.isascii() and text.isprintable() for text in texts)
        assert msgspec.json.encode(texts) == raw
        assert max(map(len, texts)) <= column.bound(raw)


@given(
    st.lists(
        st.text(st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\')), min_size=1
    )
)
def test_printable_ascii_is_seen_to_be(values: list[str]) -> None:
    raw = msgspec.json.encode(values)
    assert column.printed(raw) == len(values)


@given(st.integers(1, 400), st.integers(0, 3_000), st.lists(st.integers(0, 40), max_size=50))
def test_a_bound_holds_wherever_the_longest_is(at: int, longest: int, others: list[int]) -> None:
    lengths = [*others[:at], longest, *others[at:]]
    raw = msgspec.json.encode(["x" * length for length in lengths])
    assert max(lengths) <= column.bound(raw)


@given(VALUES, st.booleans())
def test_a_column_counts_and_keeps_what_it_was_given(values: list[str], closely: bool) -> None:  # noqa: FBT001
    found = column.read(msgspec.json.encode(values, order="sorted"), closely=closely)
    assert msgspec.json.decode(found.json) == values
    assert (found.count, found.size) == (len(values), len("".join(values).encode()))


@given(VALUES, WHERE)
@example(["a\nb", "\x00"], "plain")
@example(["w" * 260, "\u20ac" * 100], "{x}")
def test_extremes_are_as_wrong_as_the_whole(values: list[str], where: str) -> None:
    few = column.extremes(values)
    assert set(few) <= set(values)
    assert len(few) <= 5
    more: dict[str, Any] = {"name": where, "output_sandbox": (where,)}
    assert wrong(of(list(few), **more)) == wrong(of(values, **more))


@given(st.lists(VALUES | st.lists(WORDS, min_size=1, max_size=8), min_size=1, max_size=3), WHERE)
def test_what_is_read_closely_is_as_wrong_as_the_whole(parts: list[list[str]], where: str) -> None:
    few = column.small([{"x": column.read(msgspec.json.encode(part), closely=True)} for part in parts])
    more: dict[str, Any] = {"name": where, "output_sandbox": (where,)}
    whole = [value for part in parts for value in part]
    assert set(few["x"]) <= set(whole)
    assert wrong(of(list(few["x"]), **more)) == wrong(of(whole, **more))


@given(VALUES | st.lists(WORDS, min_size=1), WHERE, WHERE)
def test_nothing_is_wrong_that_a_stand_in_does_not_break(values: list[str], name: str, output: str) -> None:
    more: dict[str, Any] = {"name": name, "output_sandbox": (output,), "arguments": (name,)}
    few = column.read(msgspec.json.encode(values), closely=False).extremes
    if wrong(of(values, **more)):
        assert wrong(of(list(few), **more))


@pytest.mark.parametrize("raw", [b"[1]", b"{}", b'[["a"]]', b'["a"', b'["\xff"]', b'["\\ud800"]', b""])
@pytest.mark.parametrize("closely", [False, True])
def test_what_is_no_list_of_texts_is_no_column(raw: bytes, closely: bool) -> None:  # noqa: FBT001
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        column.read(raw, closely=closely)
