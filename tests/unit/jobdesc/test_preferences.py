"""Preferences on the wire: all parts are optional, and bounded."""

import msgspec
import pytest

from wms.jobdesc.preferences import JobPreferences


def test_the_broker_minimises_the_time_to_delivery_and_may_reserve() -> None:
    found = msgspec.json.decode(b"{}", type=JobPreferences)
    assert (found.objective, found.reservation, found.benchmarks) == ("earliest-completion", True, ())
    assert msgspec.json.encode(found) == b"{}"


@pytest.mark.parametrize(
    "text", [b'{"stage_in_seconds": -1}', b'{"latest_start": "2026-08-11T10:00:00"}', b'{"objective": "x"}']
)
def test_other_values_are_refused(text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=JobPreferences)
