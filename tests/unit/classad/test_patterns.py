"""Regular expressions that anyone may write."""

import pytest

from tests.unit.classad.references import value


@pytest.mark.parametrize(
    "pattern", [r"^atlfarm[0-9]{1,3}\.(mi|pd)\.infn\.it(:[0-9]+)?", ".*cern.*", "[]a]+", r"\d+\s*x"]
)
def test_patterns_of_every_day_are_taken(pattern: str) -> None:
    escaped = pattern.replace("\\", "\\\\")
    assert value(f'regexp("{escaped}", "atlfarm006.mi.infn.it:2119")') in {True, False}
