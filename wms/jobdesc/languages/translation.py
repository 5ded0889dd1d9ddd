"""Translations: what a reader returns for a document, what a writer returns for descriptions, and the type of a language."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from wms.jobdesc.description import JobDescription
from wms.jobdesc.languages.submit_machine import SubmitMachine
from wms.jobdesc.loss_report import Fate, LossReport
from wms.jobdesc.problem import PROBLEMS_LIMIT, InvalidDescription, Problem


class LocalFile(msgspec.Struct, frozen=True):
    """A file on the submitter's machine that becomes an input file of a job."""

    name: str
    """The path of the file in the job's directory; empty: the path is of a directory, whose content goes there."""
    path: str
    """The path of the file, or of a directory with all it holds, on the submitter's machine, relative to the document."""
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
    """The reasons for which jobs cannot be made at all, even if losses are let go."""

    def jobs(self, *, lenient: bool = False) -> list[JobDescription]:
        """Return the descriptions of a document that was translated without problems.

        Raise InvalidDescription if there are problems or no jobs. Unless `lenient` is True, raise it also if an element that
        may change a job cannot be carried out.
        """
        found = list(self.problems)
        told = {(each.place, each.line, each.message) for each in found}
        losses = [] if lenient else [each.as_problem() for each in self.report.losses]
        found += [each for each in losses if (each.place, each.line, each.message) not in told]
        if found:
            raise InvalidDescription(found[:PROBLEMS_LIMIT])
        if not self.descriptions:
            nothing = Problem(place="", message="the document has no job in it")
            raise InvalidDescription([nothing])
        return list(self.descriptions)


class WrittenDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document written from descriptions, with a loss report on each field."""

    text: str
    report: LossReport = LossReport()

    def whole(self, *, lenient: bool = False) -> str:
        """Return the text of the document.

        Unless `lenient` is True, raise InvalidDescription, with every field that cannot be expressed, if there is one.
        """
        if self.report.losses and not lenient:
            raise InvalidDescription([each.as_problem() for each in self.report.losses[:PROBLEMS_LIMIT]])
        return self.text


LanguageReader: TypeAlias = Callable[[bytes], Translation]
"""A function that translates a document. It raises Rejected if the document is too large or malformed."""
LanguageWriter: TypeAlias = Callable[[Sequence[JobDescription]], WrittenDocument]


class Element(NamedTuple):
    """What a reader does with an element of its language: the fate that it has in most documents, and a sentence on all its forms."""

    fate: Fate
    sentence: str


def elements_of(
    carried_out: Iterable[str],
    told: Mapping[str, str],
    omitted: Mapping[str, str],
    impossible: Mapping[str, str],
) -> dict[str, Element]:
    """Return the elements of a language, sorted by name: those carried out, with what is `told` of some, and those that are not.

    Names in `told` are spelt as in the manual; the case of all others is that of the reader.
    """
    spelt = {name.lower(): name for name in told}
    found = {spelt.get(name.lower(), name): Element("kept", "") for name in carried_out}
    found |= {name: Element("translated", text) for name, text in told.items()}
    found |= {name: Element("omitted", text) for name, text in omitted.items()}
    found |= {name: Element("impossible", text) for name, text in impossible.items()}
    return dict(sorted(found.items(), key=lambda each: each[0].lower()))


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
    elements: Mapping[str, Element] = {}
    """Every element of the language's manual, from which its page in the guide is made."""
    read_at: Callable[[bytes, SubmitMachine], Translation] | None = None
    """Translates a document that may refer to files and variables of the machine on which it is submitted; None: none does."""
