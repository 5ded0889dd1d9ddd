"""What commands print cannot take a terminal over, whoever wrote it."""

import subprocess
import sys

import pytest

from wms.cli.printing import drawn_rows, note, show, show_output, show_table

HOSTILE = "killed\x1b]0;owned\x07 \x1b[2J\x9b31m\x00\x08\x7f\r\nnext\tline"


def test_control_characters_are_printed_as_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    show(HOSTILE)
    note(HOSTILE)
    told = capsys.readouterr()
    plain = "killed\\x1b]0;owned\\x07 \\x1b[2J\\x9b31m\\x00\\x08\\x7f\\r\nnext\tline\n"
    assert (told.out, told.err) == (plain, plain)


def test_notes_and_results_come_in_their_order_though_both_go_into_one_pipe() -> None:
    code = "from wms.cli.printing import note, show; show('1'); note('2'); show('3')"
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True
    )
    assert done.stdout.split() == ["1", "2", "3"]


def test_colours_of_others_and_marks_of_direction_are_no_exception(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show("\x1b[31mred\x1b[0m größer gnp.\u202eexe")
    assert capsys.readouterr().out == "\\x1b[31mred\\x1b[0m größer gnp.\\u202eexe\n"


def test_output_of_jobs_is_raw_where_that_is_asked_for_alone(capsys: pytest.CaptureFixture[str]) -> None:
    show_output("\x1b[31mred\n")
    show_output("\x1b[31mred\n", raw=True)
    assert capsys.readouterr().out == "\\x1b[31mred\n\x1b[31mred\n"


def test_cells_of_tables_are_printed_so_too(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(["name"], [["ce\x1b[2J"]])
    assert "ce\\x1b[2J" in capsys.readouterr().out
    assert "\x1b" not in drawn_rows([(["ce\x1b[2J"], False)]).plain
