"""The table of `wms reservations`."""

import msgspec

from tests.unit.messages.reservation_examples import CONFIRMED
from wms.cli.reservations import RESERVATIONS, reservation_rows, why
from wms.cli.table import fitted


def test_a_row_has_its_reason_and_its_start() -> None:
    (row,) = reservation_rows([CONFIRMED])
    assert len(row) == len(RESERVATIONS)
    assert "2026-03-01T13:00:00Z" in row
    assert row[-1] == "CONFIRMED: the broker chose it"


def test_what_was_never_granted_has_no_start() -> None:
    line = msgspec.structs.replace(CONFIRMED, start_at=None, reservation="", reason="", reason_text="")
    (row,) = reservation_rows([line])
    assert row[7] == row[9] == why(line) == "-"


def test_the_table_fits_eighty_columns() -> None:
    rows = [[str(cell) for cell in row] for row in reservation_rows([CONFIRMED])]
    lines = ["  ".join(line) for line in fitted(RESERVATIONS, rows, 80).lines]
    assert all(len(line) <= 80 for line in lines)
    assert any("4000000017-2-1-1" in line and "Confirmed" in line for line in lines)
