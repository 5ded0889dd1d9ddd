"""The screen of `wms top`, in terminals of 80 and 200 columns."""

import re

from tests.unit.cli.tables import shown
from wms.cli.top_screen import ScreenView, pressed

HEAD = 4
"""Lines above the table."""


def test_a_small_terminal_shows_one_section_after_the_other() -> None:
    view, seen = ScreenView(), []
    for _ in range(4):
        lines, view = shown(view, 80, 24)
        assert len(lines) > 15
        seen.append(lines[HEAD].split()[0])
        view = pressed(view, "\t", 4, 16)
    assert seen == ["jobs", "sites", "pilots", "services"]
    assert view == ScreenView()


def test_a_large_terminal_shows_all_of_them() -> None:
    lines, _ = shown(ScreenView(), 200, 50)
    titles = [line.split()[0] for line in lines if re.match(r"(jobs|sites|pilots|services) \(", line)]
    assert titles == ["jobs", "sites", "pilots", "services"]


def test_the_head_tells_what_is_now_and_not_of_all_times() -> None:
    lines, _ = shown(ScreenView(), 200, 24)
    assert lines[
        1
    ] == "jobs now: 1,234 Waiting, 56 Running   last minute: 120 Done, 3 Failed (2.0 a second)" + ("")
    assert lines[2] == "last hour: 7,200 Done, 15 Failed: 12 MEMORY_LIMIT, 3 EXIT_CODE"


def test_keys_page_through_a_section_and_stop_at_its_ends() -> None:
    lines, view = shown(pressed(ScreenView(section=2), " ", 4, 16), 80, 24, 100)
    assert "lines 17-" in lines[HEAD]
    lines, view = shown(pressed(view, "G", 4, 16), 80, 24, 100)
    last = view.line
    _, view = shown(pressed(view, "j", 4, 16), 80, 24, 100)
    assert view.line == last
    _, view = shown(pressed(view, "g", 4, 16), 80, 24, 100)
    assert (view.line, pressed(view, "k", 4, 16).line) == (0, 0)


def test_the_keys_are_told_and_q_ends() -> None:
    view = pressed(ScreenView(), "?", 4, 16)
    lines, _ = shown(view, 80, 24)
    assert any("one page down" in line for line in lines)
    assert pressed(view, "q", 4, 16) == ScreenView()
    assert pressed(ScreenView(), "q", 4, 16).ended
