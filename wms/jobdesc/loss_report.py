"""Loss reports: what a translation between job description languages made of each element.

Each element of a source has one of three fates. Kept: the same meaning in the same words. Translated: the same meaning in
other words, and a sentence says how. Impossible: the target cannot say it, so it is left out.
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
    """The place of an element in its document."""

    element: str
    """The element's name in its own language, such as `jsdl-posix:Argument`."""
    line: int | None = None
    """The line of the element, counted from 1; None if it is unknown."""


class LossEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a translation made of one element."""

    element: str
    fate: Fate
    sentence: str = ""
    """How the element was translated, or why it is impossible; empty if it was kept."""
    line: int | None = None

    def as_problem(self) -> Problem:
        """Return the entry as a problem of a description, for users who do not accept losses."""
        remedy = "leave it out, or accept the loss without --strict"
        return Problem(place=self.element, message=self.sentence, remedy=remedy, line=self.line)


class LossReport(msgspec.Struct, frozen=True):
    """The entries of all elements of a document, in their order there."""

    entries: tuple[LossEntry, ...] = ()

    @property
    def losses(self) -> tuple[LossEntry, ...]:
        """The entries of elements that were left out."""
        return tuple(each for each in self.entries if each.fate == "impossible")

    @property
    def changes(self) -> tuple[LossEntry, ...]:
        """The entries of elements that were translated or left out."""
        return tuple(each for each in self.entries if each.fate != "kept")

    def in_short(self) -> str:
        """Return the numbers of entries by fate: `7 kept, 2 translated, 1 impossible`."""
        fates = [each.fate for each in self.entries]
        return ", ".join(f"{fates.count(fate):,} {fate}" for fate in ("kept", "translated", "impossible"))


class LossNotes:
    """The notes that a reader or writer makes while it works, from which the report is made at the end."""

    def __init__(self) -> None:
        self._entries = list[LossEntry]()

    def add(self, origin: Origin, fate: Fate, sentence: str = "") -> int:
        """Note what became of an element. Return the number of the note, by which it can be revised."""
        self._entries.append(_entry(origin, fate, sentence))
        return len(self._entries) - 1

    def kept(self, origin: Origin, sentence: str = "") -> int:
        """Note an element that means the same in the target. Return the number of the note."""
        return self.add(origin, "kept", sentence)

    def translated(self, origin: Origin, sentence: str) -> int:
        """Note an element that the target expresses in other words. Return the number of the note."""
        return self.add(origin, "translated", sentence)

    def impossible(self, origin: Origin, sentence: str) -> int:
        """Note an element that is left out. Return the number of the note."""
        return self.add(origin, "impossible", sentence)

    def revise(self, number: int, fate: Fate, sentence: str) -> None:
        """Replace the note of that number, whose element has another fate after all."""
        before = self._entries[number]
        self._entries[number] = _entry(Origin(before.element, before.line), fate, sentence)

    def report(self) -> LossReport:
        """Return the report of all notes, in the order of their lines. Notes without a line come first."""
        return LossReport(tuple(sorted(self._entries, key=_line)))


def together(reports: Sequence[LossReport]) -> LossReport:
    """Return one report with the entries of several, in order."""
    return LossReport(tuple(entry for report in reports for entry in report.entries))


def _entry(origin: Origin, fate: Fate, sentence: str) -> LossEntry:
    return LossEntry(
        shown(origin.element, NAME_LENGTH), fate, shown(sentence, SENTENCE_LENGTH), line=origin.line
    )


def _line(entry: LossEntry) -> int:
    return entry.line or 0
