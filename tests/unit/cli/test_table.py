"""Tables and the screen of `wms top`, in terminals of 80 and 200 columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.cli.tables import tables
from wms.cli.table import ALWAYS, GAP, TableColumn, column, fitted, length, wrapped


def text(lines: list[list[str]]) -> list[str]:
    return ["  ".join(line) for line in lines]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
@pytest.mark.parametrize("name", sorted(tables()))
def test_a_table_fits_its_terminal_and_ids_are_whole(name: str, width: int) -> None:
    columns, rows, ids = tables()[name]
    table = fitted(columns, rows, width)
    lines = text(table.lines)
    assert max(map(length, lines)) <= width, lines
    for each in ids:
        assert any(each in line for line in lines), (each, lines)
    if width == 200:
        assert not table.left_out
        assert not table.as_records


@pytest.mark.parametrize("name", sorted(tables()))
def test_at_80_columns_what_matters_is_there(name: str) -> None:
    columns, rows, _ = tables()[name]
    table = fitted(columns, rows, 80)
    shown = " ".join(text(table.lines))
    for each in map(column, columns):
        if each.priority <= 1:
            assert each.name in shown, (each, shown)


def test_reasons_are_wrapped_and_not_cut() -> None:
    for name in ("pilots", "sites", "why"):
        columns, rows, _ = tables()[name]
        at = [column(each).fit for each in columns].index("wrap")
        table = fitted(columns, rows, 80)
        assert "…" not in "".join(line[-1] for line in table.lines if line)
        words = {word for word in rows[0][at].split() if len(word) < 14}
        assert words <= {word for line in table.lines for cell in line for word in cell.split()}


CELLS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z", "M")) | st.just(" "), max_size=60)


COLUMNS = st.builds(
    TableColumn,
    st.sampled_from(["A", "SITE", "SLOTS>", "A LONG HEADING"]),
    st.integers(1, 9),
    st.sampled_from(["whole", "cut", "wrap"]),
    st.integers(1, 20),
)


@given(st.lists(COLUMNS, min_size=1, max_size=6), st.data(), st.integers(40, 200))
def test_any_table_fits_or_is_shown_as_records(
    columns: list[TableColumn], data: st.DataObject, width: int
) -> None:
    row = st.lists(CELLS, min_size=len(columns), max_size=len(columns))
    rows = data.draw(st.lists(row, min_size=1, max_size=4))
    table = fitted(columns, rows, width)
    for line in table.lines:
        assert sum(map(length, line)) + GAP * max(0, len(line) - 1) <= width
    if not table.as_records:
        assert len({tuple(map(length, line)) for line in table.lines}) == 1


def test_ids_that_do_not_fit_make_records() -> None:
    columns = [TableColumn("SITE", ALWAYS), TableColumn("CE", ALWAYS), TableColumn("WHY", fit="wrap")]
    table = fitted(columns, [["s" * 50, "c" * 50, "because it is so"]], 80)
    assert table.as_records
    assert text(table.lines[:3]) == [f"SITE  {'s' * 50}", f"CE    {'c' * 50}", "WHY   because it is so"]


def test_texts_are_wrapped_between_words() -> None:
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("abcdefghij kl", 4) == ["abcd", "efgh", "ij", "kl"]
    assert wrapped("", 4) == [""]
