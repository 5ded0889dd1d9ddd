"""Loss reports: what a translation between job description languages made of each element.

One rule holds for all languages. Each element of a source has one of four fates.

- `kept`: carried out with its meaning, in the same words.
- `translated`: carried out with its meaning, in other words. A sentence says how.
- `omitted`: left out, and this cannot change what the job computes, reads, writes or needs. A sentence says why.
- `impossible`: cannot be carried out, and without it the job may be another one. The document is refused, unless its user lets
  such elements go (`--lenient`).

A reader says `kept` and `translated` only of what is carried out. When in doubt between `omitted` and `impossible`, it says `impossible`.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from wms.errors import shown
from wms.jobdesc.problem import Problem

Fate: TypeAlias = Literal["kept", "translated", "omitted", "impossible"]
FATES: Final[tuple[Fate, ...]] = get_args(Fate)
NAME_LENGTH = 120
SENTENCE_LENGTH = 400


class Origin(NamedTuple):
    """The name and line of an element in its document."""

    element: str
    """The element's name in its own language, such as `jsdl-posix:Argument`."""
    line: int | None = None
    """The line of the element, counted from 1; None if it is unknown."""


class LossEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fate of one element in a translation."""

    element: str
    fate: Fate
    sentence: str = ""
    """How the element was translated, or why it is left out; empty if it was kept."""
    line: int | None = None

    def as_problem(self) -> Problem:
        """Return the entry as a problem, for users who do not let losses go."""
        remedy = "take it out, or let it go with --lenient"
        return Problem(place=self.element, message=self.sentence, remedy=remedy, line=self.line)


class LossReport(msgspec.Struct, frozen=True):
    """The entries of all elements of a document, in the order of the document."""

    entries: tuple[LossEntry, ...] = ()

    @property
    def losses(self) -> tuple[LossEntry, ...]:
        """The entries of elements without which the job may be another one."""
        return tuple(each for each in self.entries if each.fate == "impossible")

    @property
    def left_out(self) -> tuple[LossEntry, ...]:
        """The entries of elements that are not carried out: omitted and impossible."""
        return tuple(each for each in self.entries if each.fate in ("omitted", "impossible"))

    @property
    def changes(self) -> tuple[LossEntry, ...]:
        """The entries of all elements but those that were kept."""
        return tuple(each for each in self.entries if each.fate != "kept")

    def in_short(self) -> str:
        """Return the number of entries for each fate that occurs, as text: `7 kept, 2 translated, 1 impossible`."""
        counts = Counter(each.fate for each in self.entries)
        return ", ".join(f"{counts[fate]:,} {fate}" for fate in FATES if counts[fate])


class LossNotes:
    """Collects notes on elements while a reader or writer works. `report` makes the loss report from them."""

    def __init__(self) -> None:
        self._entries = list[LossEntry]()

    def add(self, origin: Origin, fate: Fate, sentence: str = "") -> int:
        """Add a note on an element: its fate, and a sentence on how or why. Return the note's number, which `revise` takes."""
        self._entries.append(_entry(origin, fate, sentence))
        return len(self._entries) - 1

    def kept(self, origin: Origin, sentence: str = "") -> int:
        """Note that an element has the same meaning in the target language. Return the note's number."""
        return self.add(origin, "kept", sentence)

    def translated(self, origin: Origin, sentence: str) -> int:
        """Note that the target language expresses an element in other words; `sentence` says how. Return the note's number."""
        return self.add(origin, "translated", sentence)

    def impossible(self, origin: Origin, sentence: str) -> int:
        """Note that an element cannot be carried out; `sentence` says why. Return the note's number."""
        return self.add(origin, "impossible", sentence)

    def omitted(self, origin: Origin, sentence: str) -> int:
        """Note that an element is left out without effect on the job; `sentence` says why. Return the note's number."""
        return self.add(origin, "omitted", sentence)

    def revise(self, number: int, fate: Fate, sentence: str) -> None:
        """Change the fate and the sentence of the note with this number, when an element turns out to have another fate."""
        before = self._entries[number]
        self._entries[number] = _entry(Origin(before.element, before.line), fate, sentence)

    def report(self) -> LossReport:
        """Return the report of all notes, in the order of their elements' lines. Notes without a line come first."""
        return LossReport(tuple(sorted(self._entries, key=_line)))


def together(reports: Sequence[LossReport]) -> LossReport:
    """Return one report with the entries of several reports, in their order."""
    return LossReport(tuple(entry for report in reports for entry in report.entries))


def _entry(origin: Origin, fate: Fate, sentence: str) -> LossEntry:
    return LossEntry(
        shown(origin.element, NAME_LENGTH), fate, shown(sentence, SENTENCE_LENGTH), line=origin.line
    )


def _line(entry: LossEntry) -> int:
    return entry.line or 0
