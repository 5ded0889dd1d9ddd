"""Parses a batch script: its shebang, the options of its `#SBATCH` lines as Slurm reads them, and the variables of Slurm that it uses.

Source: sbatch(1), and `src/sbatch/opt.c` of Slurm. Options stand before the first command. All lines together are one command line of
getopt_long: quotes group, a backslash escapes, `#` begins a comment, and a long name may be cut as long as it is unambiguous.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from wms.jobdesc.document import unreadable

Takes: TypeAlias = Literal["value", "maybe", "nothing"]
"""Whether an option takes a value; `maybe`: only one that stands behind `=`."""

_OTHERS: Final = {
    "PBS": "PBS",
    "BSUB": "LSF",
    "$": "Grid Engine",
    "OAR": "OAR",
    "COBALT": "Cobalt",
    "MSUB": "Moab",
}
_DIRECTIVE = re.compile(rb"^#(SBATCH|PBS|BSUB|OAR|COBALT|MSUB|\$)[ \t]", re.MULTILINE)
_OTHER = re.compile(r"#(PBS|BSUB|OAR|COBALT|MSUB|\$)[ \t]+-")
_USED = re.compile(r"\bSLURMD?_[A-Z0-9_]+\b")
_ASSIGNED = re.compile(r"\b(SLURMD?_[A-Z0-9_]+)=|\bunset[ \t]+(SLURMD?_[A-Z0-9_]+)")


_PIECE = re.compile(r""""((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|\\(.)|(#.*)|(\s+)|([^\s"'\\#]+)|(.)""")
_ESCAPED = re.compile(r"\\(.)")


class SbatchOption(msgspec.Struct, frozen=True):
    """An option of a batch script, by its long name, with its value and its line; the value is empty if it has none."""

    name: str
    value: str
    line: int


class BatchScript(msgspec.Struct, frozen=True):
    """A batch script: the interpreter of its first line with its argument, the options, and what Slurm itself would pass over."""

    text: str
    interpreter: tuple[str, ...]
    options: tuple[SbatchOption, ...]
    late: tuple[int, ...]
    """The lines of options that stand after the first command, where Slurm reads none."""
    variables: Mapping[str, int]
    """The variables of Slurm that the script uses but does not set, with the line of the first use."""


class _Word(NamedTuple):
    text: str
    line: int


def looks_like(data: bytes) -> bool:
    """Return whether a document is a script whose first lines, up to a command, hold options of a batch system."""
    head = data[:65_536].replace(b"\r\n", b"\n")
    if not head.startswith((b"#!", b"#SBATCH")):
        return False
    found = _DIRECTIVE.search(head)
    lines = head[: found.start()].split(b"\n") if found else [b"command"]
    return all(not line.strip() or line.lstrip().startswith(b"#") for line in lines)


def parse(
    text: str, names: Mapping[str, Takes], letters: Mapping[str, str], same: Mapping[str, str]
) -> BatchScript:
    """Return a batch script. `names` are the long names of options; `letters` and `same` are those by their letters and older names.

    Raise InvalidDescription if Slurm would refuse it, or if it is a script for another batch system.
    """
    if "\r\n" in text:
        raise unreadable("has the line ends of DOS, which no interpreter takes", remedy="run dos2unix on it")
    lines = text.split("\n")
    interpreter = tuple(lines[0][2:].strip(" \t").split(None, 1)) if lines[0].startswith("#!") else ()
    if not interpreter:
        raise unreadable(
            "is no script: its first line does not begin with #!", 1, "begin it with #!/bin/bash"
        )
    commands = (
        number for number, line in enumerate(lines) if line.strip(" \t") and line.lstrip(" \t")[0] != "#"
    )
    first = next(commands, len(lines) - 1)
    _check_system(lines[: first + 1])
    words = [_Word(*each) for number, line in enumerate(lines[:first], 1) for each in _words(line, number)]
    late = [number for number, line in enumerate(lines[first:], first + 1) if line.startswith("#SBATCH ")]
    options = [
        msgspec.structs.replace(each, name=same.get(each.name, each.name))
        for each in _options(words, names, letters)
    ]
    return BatchScript(text, interpreter, tuple(options), tuple(late), _variables(lines))


def _check_system(header: list[str]) -> None:
    if any(line.startswith("#SBATCH") for line in header):
        return
    for number, line in enumerate(header, 1):
        if found := _OTHER.match(line):
            raise unreadable(
                f"is a script for {_OTHERS[found[1]]}: its #{found[1]} lines are not read here",
                number,
                "write #SBATCH lines in their place, or give the options yourself: wms submit --help",
            )


def _words(line: str, number: int) -> Iterator[tuple[str, int]]:
    """Yield the words of one line of options, with its number."""
    if not line.startswith("#SBATCH"):
        return
    current, begun = "", False
    for double, single, escaped, comment, blank, plain, stray in _PIECE.findall(line.removeprefix("#SBATCH")):
        if stray in ("'", '"') and stray:
            raise unreadable(f"has a {stray} that is not closed", number)
        if begun and (comment or blank):
            yield current, number
            current, begun = "", False
        if comment:
            return
        current += _ESCAPED.sub(r"\1", double or single) + escaped + plain
        begun = begun or not blank
    if begun:
        yield current, number


def _options(
    words: list[_Word], names: Mapping[str, Takes], letters: Mapping[str, str]
) -> Iterator[SbatchOption]:
    left = iter(words)
    for word, line in left:
        if word.startswith("--"):
            said, sign, value = word[2:].partition("=")
            name = _full_name(said, names, line)
            if not sign and names[name] == "value":
                value = _next(left, name, line)
            yield SbatchOption(name, value, line)
        elif word.startswith("-") and len(word) > 1:
            yield from _short(word[1:], left, line, names, letters)
        else:
            raise unreadable(f"has {word[:60]!r} where an option should stand", line)


def _short(
    word: str, left: Iterator[_Word], line: int, names: Mapping[str, Takes], letters: Mapping[str, str]
) -> Iterator[SbatchOption]:
    """Yield the options of a word such as `-n4`, or `-HQ`, which is two."""
    while word:
        name = letters.get(word[0])
        if name is None:
            raise unreadable(f"has the option -{word[0]}, which sbatch does not know", line)
        word = word[1:]
        if names[name] == "value":
            yield SbatchOption(name, word.removeprefix("=") or _next(left, name, line), line)
            return
        yield SbatchOption(name, "", line)


def _next(left: Iterator[_Word], name: str, line: int) -> str:
    found = next(left, None)
    if found is None:
        raise unreadable(f"has the option --{name} without its value", line)
    return found.text


def _full_name(said: str, names: Mapping[str, Takes], line: int) -> str:
    if said in names:
        return said
    found = [name for name in names if said and name.startswith(said)]
    if len(found) == 1:
        return found[0]
    why = f"which may be {' or '.join(sorted(found)[:3])}" if found else "which sbatch does not know"
    raise unreadable(f"has the option --{said[:60]}, {why}", line)


def _variables(lines: list[str]) -> dict[str, int]:
    found, assigned = dict[str, int](), set[str]()
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("#"):
            continue
        assigned.update(each[1] or each[2] for each in _ASSIGNED.finditer(line))
        for each in _USED.findall(line):
            found.setdefault(each, number)
    return {name: number for name, number in found.items() if name not in assigned}
