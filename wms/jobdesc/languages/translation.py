"""Translations: what a reader makes of a document, what a writer makes of descriptions, and the languages that have them."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from wms.jobdesc.description import JobDescription
from wms.jobdesc.loss_report import LossReport
from wms.jobdesc.problem import PROBLEMS_LIMIT, InvalidDescription, Problem


class LocalFile(msgspec.Struct, frozen=True):
    """A file of the submitter's machine that a job gets."""

    name: str
    """Its path in the job's directory."""
    path: str
    """Its path on the submitter's machine, relative to the document."""
    executable: bool = False


class Translation(msgspec.Struct, frozen=True, kw_only=True):
    """The descriptions read from a document, with what became of each element."""

    language: str
    """The name of the source's language."""
    descriptions: tuple[JobDescription, ...] = ()
    local_files: tuple[tuple[LocalFile, ...], ...] = ()
    """For each description the files of the submitter's machine that go with it; empty if there are none at all."""
    report: LossReport = LossReport()
    problems: tuple[Problem, ...] = ()
    """What prevents jobs from being made at all, even if losses are accepted."""

    def jobs(self, *, strict: bool) -> list[JobDescription]:
        """Return the descriptions.

        Raises:
            InvalidDescription: with all problems; if strict, losses are problems too.

        """
        losses = [each.as_problem() for each in self.report.losses] if strict else []
        if found := [*self.problems, *losses]:
            raise InvalidDescription(found[:PROBLEMS_LIMIT])
        if not self.descriptions:
            nothing = Problem(place="", message="the document has no job in it")
            raise InvalidDescription([nothing])
        return list(self.descriptions)


class WrittenDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document made of descriptions, with what became of each field."""

    text: str
    report: LossReport = LossReport()

    def whole(self, *, strict: bool) -> str:
        """Return the text. Raises InvalidDescription with all losses if strict."""
        if strict and self.report.losses:
            raise InvalidDescription([each.as_problem() for each in self.report.losses[:PROBLEMS_LIMIT]])
        return self.text


LanguageReader: TypeAlias = Callable[[bytes], Translation]
"""Reads a document. Raises Rejected for one that is too large or malformed."""
LanguageWriter: TypeAlias = Callable[[Sequence[JobDescription]], WrittenDocument]


class Language(msgspec.Struct, frozen=True, kw_only=True):
    """One language of job descriptions."""

    name: str
    """Such as `jsdl`: the word after `--to`."""
    title: str
    """Its name in sentences."""
    looks_like: Callable[[bytes], bool]
    """Whether a document is in this language, by its content alone."""
    read: LanguageReader
    write: LanguageWriter | None = None
