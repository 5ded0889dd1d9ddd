"""Job descriptions from a command line: from files, or from options alone. Options override files."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from wms.cli.submit_options import flag_of
from wms.errors import Rejected, shown
from wms.jobdesc import JobDescription, validate
from wms.jobdesc.array import INDEX, PLACEHOLDER, is_array
from wms.jobdesc.description import revised
from wms.jobdesc.document import SIZE_LIMIT, read_entries
from wms.jobdesc.preferences import JobPreferences
from wms.jobdesc.problem import InvalidDescription

if TYPE_CHECKING:
    from wms.cli.description_files import GivenDescriptions

LIST_LIMIT = 64 * 1024 * 1024
SUFFIXES = (".toml", ".json", ".jsonl", ".ndjson")
FOREIGN_SUFFIXES = (".jsdl", ".xml", ".jdl", ".xrsl", ".adl", ".sub", ".submit", ".sbatch", ".slurm")
"""File suffixes of descriptions in other languages. They distinguish files from programs; the language is recognised by the content."""
STDIN = ("-", "/dev/stdin")
PROGRAM_MARK = "\0program"
"""A word that is put in front of the words after `--`, to show that they are a program and its arguments, and no files."""
FOREIGN = {
    ".csv": "a table",
    ".tsv": "a table",
    ".yaml": "YAML",
    ".yml": "YAML",
}
PARAMETER_REMEDY = 'an empty value can be given in a file of descriptions: parameters = { NAME = ["", ...] }'


def words_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command line without the program mark: names of files, or a program and its arguments.

    Raise Rejected if there is a word before `--` that no option takes, or if the first word can be neither a file nor a
    program.
    """
    if PROGRAM_MARK not in words:
        if words and not are_files(words):
            _check_is_program(words[0])
        return tuple(words)
    at = words.index(PROGRAM_MARK)
    if at and at + 1 < len(words):
        raise Rejected(
            "BAD_OPTION",
            f'"{shown(words[0], 60)}" stands before --, and no option takes it',
            "an option takes one value: repeat it for each, --input a --input b; the program stands after --",
        )
    return (*words[:at], *words[at + 1 :])


def _check_is_program(word: str) -> None:
    """Raise Rejected if `word`, the first of a command line without `--`, names a file that cannot be executed."""
    path = Path(word)
    if what := FOREIGN.get(path.suffix.lower()):
        raise Rejected(
            "NOT_A_DESCRIPTION", f"{shown(word, 200)} looks like {what}, which wms does not read", _WRITE
        )
    if path.is_file() and not os.access(path, os.X_OK):
        raise Rejected(
            "NOT_A_PROGRAM",
            f"{shown(word, 200)} is neither a file of descriptions nor a program that may be executed",
            f"{_WRITE}; or run it by its interpreter: wms submit --input {shown(word, 60)} -- {_interpreter(path)} {shown(word, 60)}",
        )


def _interpreter(path: Path) -> str:
    """Return the program that a script's first line names, `#!/usr/bin/env perl`; without such a line, what its suffix says."""
    with path.open("rb") as file:
        first = file.readline(200).decode(errors="replace")
    words = first[2:].split() if first.startswith("#!") else []
    named = [Path(word).name for word in words if not word.startswith("-")]
    named = named[1:] if named[:1] == ["env"] else named
    return shown(named[0], 60) if named else _INTERPRETERS.get(path.suffix.lower(), "sh")


_INTERPRETERS = {".py": "python3", ".pl": "perl", ".r": "Rscript", ".jl": "julia", ".bash": "bash"}
"""The interpreters of scripts, by the suffix of the file's name."""


_WRITE = f"write descriptions in a file whose name ends in {', '.join(SUFFIXES)}; a program stands after --"


def are_files(words: Sequence[str], *, program: bool = False) -> bool:
    """Return whether the words are description files, judged by the first word. If not, they are a program with its arguments.

    `program` says that they stand after `--`.
    """
    if not words:
        return False
    from wms.cli.description_files import is_recognised

    named = words[0].lower().endswith((*SUFFIXES, *FOREIGN_SUFFIXES))
    return words[0] in STDIN or named or is_recognised(words[0], program=program)


def described(
    words: Sequence[str], flags: Mapping[str, Any], *, lenient: bool = False, program: bool = False
) -> "GivenDescriptions":
    """Return the descriptions that words and options give. `flags` are the fields that options set, which override those in files.

    `program` says that the words stand after `--`.

    Unless `lenient` is True, what may change a job and cannot be carried out is a problem. Raise Rejected, with every problem of all descriptions, if
    one is invalid or nothing is given.
    """
    if not words:
        raise Rejected(
            "NO_JOBS",
            "there is nothing to submit",
            "say what to run: `wms submit -- ./prog arguments`, or a file: `wms submit jobs.toml`, or - for stdin",
        )
    from wms.cli.description_files import GivenDescriptions

    if not are_files(words, program=program):
        return GivenDescriptions(
            _from_flags({"executable": words[0], "arguments": list(words[1:]), **flags}), [{}]
        )
    given = [_from_file(file, lenient=lenient) for file in words]
    return GivenDescriptions(
        [over(each, flags) for document in given for each in document.descriptions],
        [files for document in given for files in document.files],
    )


def pairs(words: Sequence[str], option: str) -> dict[str, str]:
    """Return the values by name from words of the form `NAME=VALUE`.

    Raise Rejected, naming `option`, for a word of another form, or a name given twice.
    """
    found = dict[str, str]()
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise Rejected("BAD_OPTION", f'{option} "{shown(word, 60)}" is no NAME=VALUE')
        if name in found:
            raise Rejected("BAD_OPTION", f'{option} gives "{shown(name, 60)}" twice', "keep one of them")
        found[name] = value
    return found


def columns(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return lists of values by name, from words of the form `NAME=V1,V2,...` or `NAME=@FILE` with a value on each line.

    Raise Rejected if a value is empty.
    """
    return {name: _values(name, value) for name, value in pairs(words, "--parameter").items()}


def _values(name: str, said: str) -> tuple[str, ...]:
    values = _without_blank_end(lines_of(said[1:])) if said.startswith("@") else tuple(said.split(","))
    if "" in values:
        at = values.index("") + 1
        where = f"line {at:,} of {shown(said[1:], 200)}" if said.startswith("@") else f"value {at:,}"
        raise Rejected(
            "BAD_OPTION", f"--parameter {shown(name, 60)}: {where} is empty", f"remove it; {PARAMETER_REMEDY}"
        )
    return values


def _without_blank_end(lines: tuple[str, ...]) -> tuple[str, ...]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return tuple("" if not line.strip() else line for line in lines[:end]) or ("",)


def unknown_placeholders(description: JobDescription) -> str | None:
    """Return a warning about names in braces that are no parameter of an array; None if there are none.

    Such texts are not replaced. They may be meant so, as in `awk {print}`.
    """
    if not is_array(description):
        return None
    known = {*description.parameters, INDEX}
    texts = (
        *description.arguments,
        *description.environment.values(),
        description.name,
        *description.output_sandbox,
    )
    found = dict.fromkeys(name for text in texts for _, name in PLACEHOLDER.findall(text) if name)
    unknown = [name for name in found if name not in known]
    if not unknown:
        return None
    stays = ", ".join(f"{{{name}}}" for name in unknown[:5])
    return f"note: {stays} stays as it is: the parameters are {', '.join(sorted(known))}"


def attributes(words: Sequence[str]) -> dict[str, Any]:
    """Return the values by name from words of the form `NAME=VALUE`. Booleans and numbers get their types; other values are texts."""
    return {name: plain(value) for name, value in pairs(words, "--attribute").items()}


def plain(said: str) -> bool | int | float | str:
    """Return the boolean or number that a text such as `true` or `1.5` stands for; any other text is returned unchanged."""
    try:
        value = msgspec.json.decode(said, type=bool | int | float)
    except msgspec.DecodeError:
        return said
    return value


def _from_flags(fields: Mapping[str, Any]) -> list[JobDescription]:
    try:
        return read_entries([("", None, fields)])
    except InvalidDescription as invalid:
        raise by_flags(invalid) from None


_WORDS = {"executable": "the program", "arguments": "the arguments"}
"""How problems call the fields that no option sets."""


def by_flags(invalid: InvalidDescription) -> InvalidDescription:
    """Return the problems with each field's name replaced by the option that sets it."""
    return InvalidDescription(
        [msgspec.structs.replace(each, place=_as_flag(each.place)) for each in invalid.problems]
    )


def _as_flag(place: str) -> str:
    name = place.partition(".")[0].partition("[")[0]
    rest = place[len(name) :]
    # The option and the name of its entry are two words: --env NAME.
    return (_WORDS.get(name) or flag_of(name)) + (f" {rest[1:]}" if rest.startswith(".") else rest)


def over(description: JobDescription, flags: Mapping[str, Any]) -> JobDescription:
    """Return the description with the fields `flags`, which options set, in place of its own.

    Environment variables and attributes are added to the description's own. Raise Rejected if the result is invalid.
    """
    if not flags:
        return description
    mixed = dict(flags)
    if "environment" in mixed:
        mixed["environment"] = {**description.environment, **mixed["environment"]}
    if "attributes" in mixed:
        mixed["attributes"] = {**description.attributes, **mixed["attributes"]}
    if "preferences" in mixed:
        mixed["preferences"] = msgspec.convert(mixed["preferences"], JobPreferences)
    for name, value in mixed.items():
        if isinstance(value, list):
            mixed[name] = tuple(value)
    changed = revised(description, mixed)
    if problems := validate(changed):
        raise by_flags(InvalidDescription(problems))
    return changed


def _from_file(name: str, *, lenient: bool) -> "GivenDescriptions":
    from wms.cli.description_files import jobs_of_file

    return jobs_of_file(name, bytes_of(name), lenient=lenient)


def lines_of(name: str) -> tuple[str, ...]:
    """Return the lines of a file without their line ends. Raise Rejected if the file cannot be read, is not UTF-8, or is too large."""
    return tuple(text_of(name).replace("\r\n", "\n").removesuffix("\n").split("\n"))


def text_of(name: str) -> str:
    """Return the text of a file. Raise Rejected if it cannot be read, is not UTF-8, or is too large."""
    try:
        text = bytes_of(name, LIST_LIMIT).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Rejected("NOT_UTF8", f"{shown(name, 200)} is not UTF-8", "save it as UTF-8") from None
    if len(text) > LIST_LIMIT:
        raise Rejected(
            "LIST_TOO_LARGE", f"{shown(name, 200)} has more than {LIST_LIMIT:,} characters", "split it"
        )
    return text


def bytes_of(name: str, limit: int = SIZE_LIMIT) -> bytes:
    """Return the content of a file, or of standard input, up to `limit` and one more byte. The further byte shows that it is too large.

    Raise Rejected if it cannot be read.
    """
    # Read one byte more than allowed, which suffices to refuse a large file without reading it whole.
    if name in STDIN:
        return _read(sys.stdin.buffer, limit)
    try:
        with Path(name).open("rb") as file:
            return _read(file, limit)
    except OSError as error:
        raise Rejected(
            "NO_SUCH_FILE",
            f"cannot read {shown(name, 200)}: {error.strerror}",
            "give a file that can be read",
        ) from None


def _read(file: BinaryIO, limit: int) -> bytes:
    return file.read(limit + 1)


def local_namesake(description: JobDescription) -> str | None:
    """Return a warning if the executable is a bare name, such as `prog`, and also a file here that is not in PATH; else None.

    At the site, such a name is looked up in PATH, and the file is not sent.
    """
    name = description.executable
    if "/" in name or not Path(name).is_file() or shutil.which(name):
        return None
    return f"note: {name} is looked up in PATH at the site; write ./{name} to send the file that is here"
