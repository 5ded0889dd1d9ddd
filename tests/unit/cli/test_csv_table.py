"""Tables as comma-separated values, with names that users chose as an attack."""

import csv
from datetime import UTC, datetime

import pytest

from wms.cli.csv_table import cell, show_csv

FORMULAS = ["=cmd|' /C calc'!A0", "+1+cmd|x", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-", "--1", "-1e5x"]
PLAIN = ["fit", "a=b", "-0.5", "+1e-3", "-.5", "-inf", "", "17", "/bin/x"]


@pytest.mark.parametrize("text", FORMULAS)
def test_no_text_is_a_formula(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("text", PLAIN)
def test_other_texts_and_numbers_stay_as_they_are(text: str) -> None:
    assert cell(text) == text


def test_a_table_has_headings_and_no_formula(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    show_csv(["name", "=x", "at", "cpu"], [["=1", "a,b\n", at, None], ["-", "\x1b[31m", at, -1.5]])
    header, *rows = csv.reader(capsys.readouterr().out.splitlines(keepends=True))
    assert header == ["name", "'=x", "at", "cpu"]
    assert rows == [
        ["'=1", "a,b\n", "2026-01-02T00:00:00+00:00", ""],
        ["'-", "\\x1b[31m", "2026-01-02T00:00:00+00:00", "-1.5"],
    ]
