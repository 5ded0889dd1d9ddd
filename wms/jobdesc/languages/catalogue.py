"""The list of job description languages: recognises the language of a document, translates the document, and finds writers."""

import re
from collections.abc import Sequence

from wms.errors import Rejected, shown
from wms.jobdesc.description import JobDescription
from wms.jobdesc.from_json import read_json
from wms.jobdesc.from_toml import read_toml
from wms.jobdesc.languages import (
    adl,
    condor,
    condor_commands,
    jdl,
    sbatch,
    sbatch_elements,
    sbatch_text,
    xrsl,
    xrsl_writer,
)
from wms.jobdesc.languages.jsdl import ELEMENTS as JSDL_ELEMENTS
from wms.jobdesc.languages.jsdl import looks_like_jsdl, read_jsdl, write_jsdl
from wms.jobdesc.languages.translation import Language, Translation, WrittenDocument
from wms.jobdesc.reader import looks_like_json
from wms.jobdesc.to_json import write_json
from wms.jobdesc.to_toml import write_toml

_TOML = re.compile(
    rb"""(?:\xef\xbb\xbf)?(?:[ \t]*(?:\#[^\n]*|\r?)\n)*[ \t]*(?:\[|["'A-Za-z0-9_.-]+[ \t]*=)"""
)

JSON = Language(
    name="json",
    title="our JSON",
    looks_like=looks_like_json,
    read=lambda data: Translation(language="json", descriptions=tuple(read_json(data))),
    write=lambda descriptions: WrittenDocument(text=write_json(descriptions)),
)
TOML = Language(
    name="toml",
    title="our TOML",
    looks_like=lambda data: _TOML.match(data) is not None,
    read=lambda data: Translation(language="toml", descriptions=tuple(read_toml(data))),
    write=lambda descriptions: WrittenDocument(text=write_toml(descriptions)),
)
ADL = Language(
    name=adl.NAME,
    title="EMI's activity description language",
    looks_like=adl.looks_like,
    read=adl.read,
    elements=adl.ELEMENTS,
)
XRSL = Language(
    name=xrsl.NAME,
    title="ARC's xRSL",
    looks_like=xrsl.looks_like,
    read=xrsl.read,
    write=xrsl_writer.write,
    elements=xrsl.ELEMENTS,
)
JDL = Language(
    name=jdl.NAME,
    title="the JDL of DIRAC and gLite",
    looks_like=jdl.looks_like,
    read=jdl.read,
    read_at=jdl.read,
    elements=jdl.ELEMENTS,
)
HTCONDOR = Language(
    name=condor.NAME,
    title="HTCondor's submit files",
    looks_like=condor.looks_like,
    read=condor.read,
    read_at=condor.read,
    elements=condor_commands.ELEMENTS,
)
SBATCH = Language(
    name=sbatch.NAME,
    title="#SBATCH scripts of Slurm",
    looks_like=sbatch_text.looks_like,
    read=sbatch.read,
    elements=sbatch_elements.ELEMENTS,
)
JSDL = Language(
    name="jsdl",
    title="JSDL",
    looks_like=looks_like_jsdl,
    read=read_jsdl,
    write=write_jsdl,
    elements=JSDL_ELEMENTS,
)
LANGUAGES: tuple[Language, ...] = (JSON, JSDL, ADL, XRSL, SBATCH, JDL, HTCONDOR, TOML)
"""All languages, in the order in which `looks_like` is tried on a document."""


def language_of(data: bytes) -> Language | None:
    """Return the language of a document, recognised by its content; None if it looks like no known language."""
    return next((each for each in LANGUAGES if each.looks_like(data)), None)


def translate(data: bytes) -> Translation:
    """Return the translation of a document, whose language is recognised by its content. TOML is tried if no language fits.

    Raise InvalidDescription, with every problem, if the document is malformed, or if a job in our JSON or TOML is invalid.
    Raise Rejected if the document is too large, or not in a known encoding.
    """
    return (language_of(data) or TOML).read(data)


def write(descriptions: Sequence[JobDescription], name: str) -> WrittenDocument:
    """Return a document with the descriptions, in the language called `name`.

    Raise Rejected if no such language has a writer (NO_SUCH_LANGUAGE), or the language cannot hold so many jobs.
    """
    found = next((each for each in LANGUAGES if each.name == name and each.write), None)
    if found is None or found.write is None:
        known = ", ".join(writable())
        raise Rejected(
            "NO_SUCH_LANGUAGE", f'no language "{shown(name, 40)}" can be written', f"use one of {known}"
        )
    return found.write(descriptions)


def writable() -> tuple[str, ...]:
    """Return the names of the languages that have a writer."""
    return tuple(each.name for each in LANGUAGES if each.write is not None)
