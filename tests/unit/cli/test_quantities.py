from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.cli.quantities import amount, moment, span, stamp

NOW = datetime(2026, 11, 22, 20, 0, tzinfo=UTC)


def test_moments() -> None:
    assert moment("2h", NOW) == NOW.replace(hour=18)
    assert moment("2026-11-22T08:00+00:00", NOW) == NOW.replace(hour=8)
    assert moment("2026-11-22T08:00", NOW).tzinfo is not None
    for text in ("yesterday", "", "-1h", "9" * 40, "2026-13-01"):
        with pytest.raises(ValueError, match="how long ago"):
            moment(text, NOW)


@given(st.datetimes(datetime(1970, 1, 2), datetime(2100, 1, 1), timezones=st.timezones()))
def test_a_time_that_is_printed_can_be_given_back(at: datetime) -> None:
    assert moment(stamp(at), NOW) == at.astimezone(UTC).replace(microsecond=0)
    assert moment(f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC", NOW) == moment(stamp(at), NOW)
    assert abs((moment(stamp(at, exactly=True), NOW) - at).total_seconds()) < 0.001


def test_people_read_times_and_sizes() -> None:
    assert [span(each) for each in (0, 59, 200, 18_180, 187_200)] == ["0s", "59s", "3m20s", "5h03m", "2d04h"]
    assert [amount(each) for each in (None, 512, 1536, 5 * 1024**4)] == ["-", "512 B", "1.5 KiB", "5.0 TiB"]
