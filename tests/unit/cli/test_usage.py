"""Rows, records and comma-separated values of `wms usage`."""

import msgspec
import pytest

from tests.unit.auth.issuer import code
from tests.unit.messages.usage_examples import FULL
from wms.cli import usage
from wms.messages import replies

REPORT = FULL["usage-report"]
assert isinstance(REPORT, replies.UsageReport)
(LINE,) = REPORT.lines


def test_a_row_is_in_hours_of_slots() -> None:
    vo, month, attempts, cpu, wall, efficiency, _, waste, mostly = usage.row(LINE)
    assert (vo, month, attempts, cpu, wall) == ("atlas", "2026-03", "12", "0.5", "2.0")
    assert (efficiency, waste, mostly) == ("25%", "0.3", "EXIT_CODE")


def test_csv_has_the_names_and_no_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    odd = msgspec.structs.replace(LINE, key=("=cmd()", "2026-03"), slot_seconds=0.0)
    usage.print_csv(("owner", "month"), [odd])
    head, line = capsys.readouterr().out.splitlines()
    assert head.startswith("owner,month,attempts,done,cpu_seconds")
    assert line.startswith("'=cmd(),2026-03,12,10,1800.5,3600.0,0.0,,")


def test_a_record_names_what_it_is_by_and_why_time_was_wasted() -> None:
    found = usage.record(("vo", "month"), LINE)
    assert (found["vo"], found["month"], found["wasted_seconds"]) == ("atlas", "2026-03", 960.5)
    assert found["waste"] == {"EXIT_CODE": 900.0, "NODE_LOST": 60.5}


@pytest.mark.parametrize("by", ["", "king", "vo,vo", "vo,,king"])
def test_what_usage_is_by_is_checked(by: str) -> None:
    assert code(lambda: usage.columns(by)) == "BAD_OPTION"


def test_the_order_of_columns_is_the_users() -> None:
    assert usage.columns("month, vo") == ("month", "vo")
