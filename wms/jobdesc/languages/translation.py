"""Translations: what a reader returns for a document, what a writer returns for descriptions, and the type of a language."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from wms.jobdesc.description import JobDescription
from wms.jobdesc.loss_report import LossReport
from wms.jobdesc.problem import PROBLEMS_LIMIT, InvalidDescription, Problem


class LocalFile(msgspec.Struct, frozen=True):
    """A file on the submitter's machine that becomes an input file of a job."""

    name: str
    """The path of the file in the job's directory."""
    path: str
    """The path of the file on the submitter's machine, relative to the document."""
    executable: bool = False


class Translation(msgspec.Struct, frozen=True, kw_only=True):
    """The descriptions read from a document, with a loss report on each element of the document."""

    language: str
    """The name of the document's language."""
    descriptions: tuple[JobDescription, ...] = ()
    local_files: tuple[tuple[LocalFile, ...], ...] = ()
    """For each description the files of the submitter's machine to send with it; empty if no description has any."""
    report: LossReport = LossReport()
    problems: tuple[Problem, ...] = ()
    """The reasons for which jobs cannot be made at all, even if losses are accepted."""

    def jobs(self, *, strict: bool) -> list[JobDescription]:
        """Return the descriptions of a document that was translated without problems.

        Raise InvalidDescription if there are problems or no jobs. If `strict` is True, raise it also if an element was left
        out.
        """
        losses = [each.as_problem() for each in self.report.losses] if strict else []
        if found := [*self.problems, *losses]:
            raise InvalidDescription(found[:PROBLEMS_LIMIT])
        if not self.descriptions:
            nothing = Problem(place="", message="the document has no job in it")
            raise InvalidDescription([nothing])
        return list(self.descriptions)


class WrittenDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document written from descriptions, with a loss report on each field."""

    text: str
    report: LossReport = LossReport()

    def whole(self, *, strict: bool) -> str:
        """Return the text of the document.

        If `strict` is True, raise InvalidDescription, with every field that was left out, if there is one.
        """
        if strict and self.report.losses:
            raise InvalidDescription([each.as_problem() for each in self.report.losses[:PROBLEMS_LIMIT]])
        return self.text


LanguageReader: TypeAlias = Callable[[bytes], Translation]
"""A function that translates a document. It raises Rejected if the document is too large or malformed."""
LanguageWriter: TypeAlias = Callable[[Sequence[JobDescription]], WrittenDocument]


class Language(msgspec.Struct, frozen=True, kw_only=True):
    """A language of job descriptions: its name, and the functions that recognise, read and, except for `write` None, write it."""

    name: str
    """The value of the option `--to` for the language, such as `jsdl`."""
    title: str
    """The name of the language in messages to users."""
    looks_like: Callable[[bytes], bool]
    """Returns whether a document is in this language, by its content alone."""
    read: LanguageReader
    write: LanguageWriter | None = None
