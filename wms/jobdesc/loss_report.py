"""Loss reports: what a translation between job description languages made of each element.

Each element of a source is kept (the same meaning in the same words), translated (the meaning in other words, and a sentence says how), or
impossible (the target cannot say it, so it is left out).
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from wms.errors import shown
from wms.jobdesc.problem import Problem

Fate: TypeAlias = Literal["kept", "translated", "impossible"]
NAME_LENGTH = 120
SENTENCE_LENGTH = 400


class Origin(NamedTuple):
    """The place of an element in its source."""

    element: str
    """The element's name in its own language, such as `jsdl-posix:Argument`."""
    line: int | None = None
    """The line, counted from 1; None if it is unknown."""


class LossEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one element."""

    element: str
    fate: Fate
    sentence: str = ""
    """How it was translated, or why it is impossible."""
    line: int | None = None

    def as_problem(self) -> Problem:
        """Return the entry as a problem of a description."""
        remedy = "leave it out, or accept the loss without --strict"
        return Problem(place=self.element, message=self.sentence, remedy=remedy, line=self.line)


class LossReport(msgspec.Struct, frozen=True):
    """The entries of all elements, in the order of the source."""

    entries: tuple[LossEntry, ...] = ()

    @property
    def losses(self) -> tuple[LossEntry, ...]:
        """The entries of what was left out."""
        return tuple(each for each in self.entries if each.fate == "impossible")

    @property
    def changes(self) -> tuple[LossEntry, ...]:
        """The entries of what is not as it was: translated, or left out."""
        return tuple(each for each in self.entries if each.fate != "kept")

    def in_short(self) -> str:
        """Return the numbers of entries: `7 kept, 2 translated, 1 impossible`."""
        fates = [each.fate for each in self.entries]
        return ", ".join(f"{fates.count(fate):,} {fate}" for fate in ("kept", "translated", "impossible"))


class LossNotes:
    """The notes of a reader or writer at work, of which the report is made at the end."""

    def __init__(self) -> None:
        self._entries = list[LossEntry]()

    def add(self, origin: Origin, fate: Fate, sentence: str = "") -> int:
        """Note what became of an element; return the number of the note, by which it can be revised."""
        self._entries.append(_entry(origin, fate, sentence))
        return len(self._entries) - 1

    def kept(self, origin: Origin, sentence: str = "") -> int:
        """Note an element that means the same in the target."""
        return self.add(origin, "kept", sentence)

    def translated(self, origin: Origin, sentence: str) -> int:
        """Note an element that the target says otherwise."""
        return self.add(origin, "translated", sentence)

    def impossible(self, origin: Origin, sentence: str) -> int:
        """Note an element that is left out."""
        return self.add(origin, "impossible", sentence)

    def revise(self, number: int, fate: Fate, sentence: str) -> None:
        """Replace a note whose element had another fate after all."""
        before = self._entries[number]
        self._entries[number] = _entry(Origin(before.element, before.line), fate, sentence)

    def report(self) -> LossReport:
        """Return the report, by lines where they are known."""
        return LossReport(tuple(sorted(self._entries, key=_line)))


def together(reports: Sequence[LossReport]) -> LossReport:
    """Return the entries of several reports in one."""
    return LossReport(tuple(entry for report in reports for entry in report.entries))


def _entry(origin: Origin, fate: Fate, sentence: str) -> LossEntry:
    return LossEntry(
        shown(origin.element, NAME_LENGTH), fate, shown(sentence, SENTENCE_LENGTH), line=origin.line
    )


def _line(entry: LossEntry) -> int:
    return entry.line or 0
