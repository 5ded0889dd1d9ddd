"""What a payload printed, as text whose positions in bytes stay known."""

from hypothesis import given
from hypothesis import strategies as st

from wms.output_text import decoded, encoded


def test_a_byte_that_cannot_be_shown_is_one_character() -> None:
    text, used = decoded("caf\u00e9\u00e9".encode("latin-1") + "\u00e9\ufffd".encode(), is_end=True)
    assert text == "caf\ufffd\ufffd\u00e9\ufffd\ufffd\ufffd"
    assert used == len(encoded(text)) == 10


def test_a_character_that_is_cut_comes_with_the_next_part() -> None:
    raw = "a\u20ac".encode()
    assert decoded(raw[:3], is_end=False) == ("a", 1)
    assert decoded(raw[1:], is_end=False) == ("\u20ac", 3)
    assert decoded(raw[:3], is_end=True) == ("a\ufffd\ufffd", 3)


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=20), st.text(max_size=20).map(lambda text: text.encode("utf-8", "replace"))
        )
    )
)
def test_parts_of_any_bytes_join_to_the_whole_and_keep_its_length(parts: list[bytes]) -> None:
    raw = b"".join(parts)
    whole, used = decoded(raw, is_end=True)
    assert used == len(raw) == len(encoded(whole))
    shown, left = "", b""
    for part in parts:
        text, taken = decoded(left + part, is_end=False)
        shown, left = shown + text, (left + part)[taken:]
    assert shown + decoded(left, is_end=True)[0] == whole
