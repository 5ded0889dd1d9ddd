"""The items of a `queue` statement: lists, lines of the submit file or of another file, and names that match patterns."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from wms.errors import shown
from wms.jobdesc.languages.condor_lines import logical_lines
from wms.jobdesc.languages.condor_macros import MacroError, evaluated
from wms.jobdesc.languages.submit_machine import SubmitMachine

ITEMS_LIMIT: Final = 1_000_000
HEAD_LIMIT: Final = 4_096
"""How many characters may stand before the items: the count and the names of variables."""

_KEYWORD = re.compile(r"(?<!\S)(in|from|matching)(?=[\s(]|$)\s*", re.IGNORECASE)
_NAMES = re.compile(r"(?<![^\s)])[A-Za-z_][A-Za-z0-9_.]*(?:[\s,]+[A-Za-z_][A-Za-z0-9_.]*)*$")
_QUALIFIER = re.compile(r"(files|dirs|any|table)(?=[\s(\[]|$)\s*", re.IGNORECASE)
_SLICE = re.compile(r"\[\s*(-?[0-9]*)\s*(?::\s*(-?[0-9]*)\s*)?(?::\s*(-?[0-9]*)\s*)?\]\s*")
_SUM = re.compile(r"[0-9+*/() %-]{1,60}")


class ItemList(msgspec.Struct, frozen=True):
    """The items of a `queue` statement: the names of its variables, and a row of their values for each item."""

    names: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ((),)
    numbers: Sequence[int] = (0,)
    """The number of each row among all items, those that a slice leaves out included."""


def items_of(said: str, lines: Sequence[str], machine: SubmitMachine | None) -> tuple[int, ItemList]:
    """Return how often a `queue` statement queues each item, and its items.

    `said` is the text after the word `queue`, `lines` those of a list over several lines. Raise MacroError if they are not understood.
    """
    keyword = _KEYWORD.search(said)
    if keyword is None:
        return _count(said), ItemList()
    head, how, rest = said[: keyword.start()].strip(), keyword[1].lower(), said[keyword.end() :].strip()
    found = _NAMES.search(head) if len(head) <= HEAD_LIMIT else None
    names = re.split(r"[\s,]+", found[0]) if found else ["Item"]
    count = _count(head[: found.start()] if found else head)
    kind, where = "", _slice(None)
    while rest and rest[0] != "(" and ((qualifier := _QUALIFIER.match(rest)) or (cut := _SLICE.match(rest))):
        if qualifier:
            kind, rest = qualifier[1].lower(), rest[qualifier.end() :]
        else:
            assert cut is not None
            where, rest = _slice(cut), rest[cut.end() :]
    texts = _texts(how, kind, rest, lines, machine)
    if len(texts) > ITEMS_LIMIT:
        raise MacroError(f"queues more than {ITEMS_LIMIT:,} items")
    numbers = range(len(texts))[where[0] : where[1] : where[2]]
    rows = [_row(texts[each], len(names)) for each in numbers]
    return count, ItemList(names, rows, numbers)


def _slice(found: "re.Match[str] | None") -> tuple[int, int | None, int]:
    if found is None:
        return 0, None, 1
    start, end, step = found[1], found[2], found[3]
    if end is None or (step and int(step) < 1):
        raise MacroError(f"has the slice {found[0].strip()}, which HTCondor does not take")
    return int(start or 0), int(end) if end else None, int(step or 1)


def _count(text: str) -> int:
    said = text.strip()
    if not said:
        return 1
    if said.isdigit() and len(said) < 11:
        return int(said)
    value = evaluated(said) if _SUM.fullmatch(said) else said
    if not re.fullmatch(r"[0-9]{1,10}", value):
        raise MacroError(f"has a queue statement that is not understood: {shown(said, 60)}")
    return int(value)


def _texts(
    how: str, kind: str, rest: str, lines: Sequence[str], machine: SubmitMachine | None
) -> Sequence[str]:
    if kind == "table" or (kind and how != "matching"):
        raise MacroError(f"queues from a {kind}, which is not read")
    if rest.startswith("("):
        inner = [rest[1:].removesuffix(")") if not lines else rest[1:], *lines]
    elif how == "from":
        return _lines_of(rest, machine)
    else:
        inner = [rest]
    if how == "from":
        return [each.strip() for each in inner if each.strip() and not each.startswith("#")]
    words = [each for line in inner if not line.startswith("#") for each in re.split(r"[,\s]+", line) if each]
    return words if how == "in" else _matching(words, kind, machine)


def _lines_of(path: str, machine: SubmitMachine | None) -> Sequence[str]:
    if path.endswith("|") or path in ("", "-"):
        raise MacroError("queues what a program prints; let it write a file, and queue from that")
    if machine is None:
        raise MacroError(f"queues the lines of {shown(path, 100)}, a file of its submit machine")
    return [line for _, line in logical_lines(machine.text(path))]


def _matching(patterns: Sequence[str], kind: str, machine: SubmitMachine | None) -> Sequence[str]:
    if machine is None:
        raise MacroError("queues the names that match patterns on its submit machine")
    found = dict.fromkeys(
        each.name
        for pattern in patterns
        for each in machine.matching(pattern)
        if kind in ("", "any") or each.is_directory is (kind == "dirs")
    )
    return [*found]


def _row(text: str, count: int) -> Sequence[str]:
    """Return the values of an item's variables. The last one takes what is left; missing ones are empty."""
    values, separator = list[str](), "\x1f" if "\x1f" in text else ", \t"
    rest = text.strip(" \t")
    while len(values) < count - 1:
        cut = re.search(f"[{separator}]", rest)
        values.append(rest[: cut.start()].rstrip(" \t") if cut else rest)
        rest = rest[cut.end() :].lstrip(" \t") if cut else ""
    return [*values, rest]
