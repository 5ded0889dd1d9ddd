"""The screen of `wms top`: its sections, and its keys. A small terminal shows one section at a time. Pure functions."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from wms.cli.table import Fitted, TableColumn, fitted

TALL = 40
"""How many lines a terminal must have to show all sections at once."""
HELP = (
    "tab, right, l      the next section        shift-tab, left, h   the one before",
    "down, j            one line down           up, k                one line up",
    "page down, space   one page down           page up, b           one page up",
    "g, home            to the top              G, end               to the end",
    "?                  these keys              q                    end",
)

KEYS = {
    "\t": "next", "\x1b[C": "next", "l": "next",
    "\x1b[Z": "before", "\x1b[D": "before", "h": "before",
    "\x1b[B": "down", "j": "down", "\x1b[A": "up", "k": "up",
    "\x1b[6~": "page down", " ": "page down", "\x1b[5~": "page up", "b": "page up",
    "g": "top", "\x1b[H": "top", "\x1b[1~": "top", "G": "end", "\x1b[F": "end", "\x1b[4~": "end",
    "?": "help", "q": "quit", "\x03": "quit", "\x1b": "quit",
}  # fmt: skip
"""The command of each key, by the characters that the terminal sends for it."""


class ScreenSection(NamedTuple):
    """A section of the screen: a table with its title, and the text that is shown in place of an empty table."""

    title: str
    columns: Sequence[TableColumn | str]
    rows: Sequence[Sequence[str]]
    empty: str


class ScreenView(msgspec.Struct, frozen=True):
    """What the user has chosen to see: the section, the index of its first visible line, and whether the help on keys is shown."""

    section: int = 0
    line: int = 0
    help: bool = False
    ended: bool = False


class JobRates(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs there are now, and how many ended recently, by state or reason. All are empty in an empty system."""

    now: Mapping[str, int]
    """Jobs that have not ended, by state."""
    last_minute: Mapping[str, int]
    """Jobs that ended within the last minute, by state."""
    failures: Mapping[str, int]
    """Jobs that failed within the last hour, by reason."""
    done_last_hour: int = 0


def pressed(view: ScreenView, key: str, sections: int, page: int) -> ScreenView:
    """Return the view after a key was pressed. `sections` is the number of sections, `page` how many lines a page scrolls."""
    match KEYS.get(key):
        case "next" | "before" as way:
            step = 1 if way == "next" else -1
            return ScreenView(section=(view.section + step) % sections)
        case "down" | "up" | "page down" | "page up" as way:
            step = {"down": 1, "up": -1, "page down": page, "page up": -page}[way]
            return msgspec.structs.replace(view, line=max(0, view.line + step), help=False)
        case "top" | "end" as way:
            return msgspec.structs.replace(view, line=0 if way == "top" else 10**9, help=False)
        case "help":
            return msgspec.structs.replace(view, help=not view.help)
        case "quit":
            return msgspec.structs.replace(view, help=False) if view.help else ScreenView(ended=True)
    return view


class Row(NamedTuple):
    """One line of the screen: its cells, and whether it is a heading or a title."""

    cells: Sequence[str]
    strong: bool = False


def screen(
    pace: JobRates, sections: Sequence[ScreenSection], view: ScreenView, width: int, height: int
) -> tuple[list[Row], ScreenView]:
    """Return the screen as at most `height` lines of at most `width` cells, and the view.

    The returned view has the first visible line corrected to one that exists.
    """
    rows = [_titles(sections, view, width), *(Row([_short(line, width)]) for line in pace_lines(pace))]
    rows.append(Row([""]))
    if view.help:
        return [*rows, *(Row([_short(line, width)]) for line in HELP)][:height], view
    room = height - len(rows)
    if height < TALL:
        lines, view = _section(sections[view.section], view, width, room)
        return [*rows, *lines][:height], view
    for n, (section, lines_of_it) in enumerate(
        zip(sections, _shares(sections, view.section, room), strict=True)
    ):
        looked_at = view if n == view.section else ScreenView()
        lines, seen = _section(section, looked_at, width, lines_of_it)
        view = seen if n == view.section else view
        rows += lines
    return rows[:height], view


def pace_lines(pace: JobRates) -> list[str]:
    """Return two lines: the jobs by state with the rate of ended jobs, and the recent failures by reason."""
    now = ", ".join(f"{count:,} {state}" for state, count in _largest(pace.now)) or "none"
    ended = ", ".join(f"{count:,} {state}" for state, count in _largest(pace.last_minute))
    rate = sum(pace.last_minute.values()) / 60
    last = f"   last minute: {ended} ({rate:,.1f} a second)" if ended else "   last minute: none ended"
    why = ", ".join(f"{count:,} {reason}" for reason, count in _largest(pace.failures))
    failed = sum(pace.failures.values())
    hour = f"{pace.done_last_hour:,} Done, {failed:,} Failed" + (f": {why}" if why else "")
    return [f"jobs now: {now}{last}", f"last hour: {hour}"]


def _largest(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(((name, count) for name, count in counts.items() if count), key=lambda each: -each[1])


def _titles(sections: Sequence[ScreenSection], view: ScreenView, width: int) -> Row:
    names = [f"[{each.title}]" if n == view.section else f" {each.title} " for n, each in enumerate(sections)]
    line = f"wms top   {' '.join(names)}"
    keys = "tab: next   ?: keys   q: end"
    space = max(2, width - len(line) - len(keys))
    return Row([_short(f"{line}{' ' * space}{keys}", width)], strong=True)


def _short(line: str, width: int) -> str:
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _section(
    section: ScreenSection, view: ScreenView, width: int, height: int
) -> tuple[list[Row], ScreenView]:
    """Return a section as at most `height` lines, and the view with the first visible line corrected to one that exists.

    The lines are the title with the range of shown rows, the headings, and the rows.
    """
    if not section.rows:
        return [Row([f"{section.title}: {section.empty}"], strong=True), Row([""])][: max(0, height)], view
    table = fitted(section.columns, section.rows, width)
    heads = [] if table.as_records else table.lines[:1]
    lines = table.lines[len(heads) :]
    page = max(1, height - len(heads) - 2)
    start = max(0, min(view.line, len(lines) - page))
    shown = lines[start : start + page]
    title = f"{section.title}{_which(section, table, start, len(shown), len(lines))}"
    rows = [
        Row([_short(title, width)], strong=True),
        *(Row(head, strong=True) for head in heads),
        *(Row(line) for line in shown),
        Row([""]),
    ]
    return rows[: max(0, height)], msgspec.structs.replace(view, line=start)


def _which(section: ScreenSection, table: Fitted, start: int, shown: int, lines: int) -> str:
    beside = f"   (no room for {', '.join(table.left_out)})" if table.left_out else ""
    if shown >= lines:
        return f" ({len(section.rows):,}){beside}"
    return f" ({len(section.rows):,}), lines {start + 1:,}-{start + shown:,} of {lines:,}{beside}"


def _shares(sections: Sequence[ScreenSection], looked_at: int, room: int) -> list[int]:
    """Return the number of lines for each section, of `room` in all: equal parts, but at most as many as a section needs.

    Lines that are left over go first to the section `looked_at` (its index), then to the others.
    """
    needs = [len(each.rows) + 3 if each.rows else 2 for each in sections]
    each = max(2, room // len(sections))
    given = [min(need, each) for need in needs]
    order = [looked_at, *(n for n in range(len(sections)) if n != looked_at)]
    for n in order:
        given[n] = min(needs[n], given[n] + room - sum(given))
    return given
