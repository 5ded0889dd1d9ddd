"""Parses an HTCondor submit file: commands `name = value`, macros `$(name)`, and `queue` statements.

Source: the manual of HTCondor on submit files. Conditions and includes are refused, because their outcome depends on the submit machine.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from wms.jobdesc.document import unreadable

MACRO_DEPTH: Final = 10
MACRO_LENGTH: Final = 65_536
"""How many characters a value may have after its macros are replaced. Macros that use each other twice would double it again and again."""
QUEUES_LIMIT: Final = 1_000
ITEMS_LIMIT: Final = 1_000_000

_COMMAND = re.compile(r"\s*([+A-Za-z_][A-Za-z0-9_.]*)\s*(?<!=)=(?!=)\s*(.*)", re.DOTALL)
_QUEUE = re.compile(r"\s*queue\b\s*(.*)", re.IGNORECASE | re.DOTALL)
_REFUSED = re.compile(r"\s*(if|elif|else|endif|include|warning|error)\b\s*[^=]", re.IGNORECASE)
_MACRO = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_.]*)(?::([^()]*))?\)")
_MACRO_NAME = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_.]*)[:)]")
_ITEMS = re.compile(
    r"(?P<count>[0-9]+)?\s*(?P<names>[A-Za-z_][A-Za-z0-9_]*(?:\s*,\s*[A-Za-z_][A-Za-z0-9_]*)*)?\s*(?:(?P<how>in|from|matching)\b\s*(?P<rest>.*))?",
    re.IGNORECASE | re.DOTALL,
)
OWN_MACROS: Final = frozenset(
    {"process", "procid", "cluster", "clusterid", "step", "row", "item", "itemindex"}
)
"""The names, in lower case, of the macros that HTCondor itself defines for each job."""


class Command(msgspec.Struct, frozen=True):
    """A command `name = value` of a submit file, and its line number."""

    name: str
    value: str
    line: int

    @property
    def key(self) -> str:
        """The name of the command in lower case."""
        return self.name.lower()


class QueueStatement(msgspec.Struct, frozen=True):
    """A `queue` statement: the commands that are in effect at its line, how often each item is queued, and the items."""

    commands: Mapping[str, Command]
    count: int
    items: Mapping[str, Sequence[str]]
    """Lists of values, all of one length, by the names of their variables; empty if the statement has no items."""
    line: int


def parse(text: str) -> list[QueueStatement]:
    """Return the `queue` statements of a submit file, in order.

    Raise InvalidDescription if the text is no submit file, or depends on the submit machine, as conditions and includes do.
    """
    commands, queues = dict[str, Command](), list[QueueStatement]()
    lines = _logical_lines(text)
    at = 0
    while at < len(lines):
        number, line = lines[at]
        at += 1
        if _REFUSED.match(line) and not _COMMAND.fullmatch(line):
            raise unreadable(
                f"has the statement {line.split()[0]!r}, which only HTCondor can carry out", number
            )
        if found := _QUEUE.fullmatch(line):
            said, at = _whole_queue(found[1], lines, at)
            queues.append(_queue(said, commands, number))
            if len(queues) > QUEUES_LIMIT:
                raise unreadable(f"has more than {QUEUES_LIMIT:,} queue statements", number)
        elif command := _COMMAND.fullmatch(line):
            commands = {**commands, command[1].lower(): Command(command[1], command[2].strip(), number)}
        else:
            raise unreadable(f"is no submit file: {line[:60]!r} is no command", number)
    if not queues:
        raise unreadable("has no queue statement", remedy="end it with: queue")
    return queues


def _logical_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines with their numbers (from 1): continued lines joined, comments and blank lines left out."""
    found, held, first = list[tuple[int, str]](), "", 0
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if not held and (not line.strip() or line.lstrip().startswith("#")):
            continue
        first = first or number
        if line.endswith("\\"):
            held += line[:-1]
            continue
        found.append((first, held + line))
        held, first = "", 0
    return [*found, (first, held)] if held.strip() else found


def _whole_queue(said: str, lines: Sequence[tuple[int, str]], at: int) -> tuple[str, int]:
    """Return the text of a `queue` statement, which may continue over several lines, and the index in `lines` of the line after it.

    `said` is the text after the word `queue`; `at` is the index of the next line. A list of items ends at its closing bracket.
    """
    pieces = [said]
    if "(" in said and ")" not in said:
        while at < len(lines):
            pieces.append(lines[at][1])
            at += 1
            if pieces[-1].strip().startswith(")"):
                break
    return "\n".join(pieces), at


def _queue(said: str, commands: Mapping[str, Command], line: int) -> QueueStatement:
    found = _ITEMS.fullmatch(said.strip())
    how = (found["how"] or "").lower() if found else ""
    if found is None or (found["names"] and not how):
        raise unreadable(f"has a queue statement that is not understood: {said[:60]!r}", line)
    names = [each.strip() for each in (found["names"] or "Item").split(",")]
    items = dict[str, Sequence[str]]()
    if how == "matching" or (how and "(" not in (found["rest"] or "") and how == "from"):
        raise unreadable(
            "queues the files or the lines of a file, which only its submit machine has",
            line,
            "write the items into the document",
        )
    if how:
        items = _items(names, found["rest"], how, line)
    return QueueStatement(commands, int((found["count"] or "1")[:10]), items, line)


def _items(names: Sequence[str], rest: str, how: str, line: int) -> dict[str, Sequence[str]]:
    inner = rest.strip().removeprefix("(").rstrip().removesuffix(")")
    if how == "in":
        rows = [[each] for each in re.split(r"[,\s]+", inner) if each]
    else:
        rows = [_row(each, len(names)) for each in inner.split("\n") if each.strip()]
    if len(rows) > ITEMS_LIMIT:
        raise unreadable(f"queues more than {ITEMS_LIMIT:,} items", line)
    return {name: [row[n] if n < len(row) else "" for row in rows] for n, name in enumerate(names)}


def _row(line: str, count: int) -> list[str]:
    separator = r"\s*,\s*" if "," in line else r"\s+"
    return (
        [each.strip() for each in re.split(separator, line.strip(), maxsplit=max(0, count - 1))]
        if count > 1
        else [line.strip()]
    )


def without_macros(text: str, commands: Mapping[str, Command], keep: frozenset[str], line: int) -> str:
    """Return a value with those macros replaced that `commands` define or that have a default.

    Macros named in `keep` (lower case) stay. `line` is the line number for errors. Raise InvalidDescription if a macro is not
    defined, or the value grows too large.
    """
    for _ in range(MACRO_DEPTH):
        after = _MACRO.sub(lambda found: _value(found, commands, keep, line), text)
        if len(after) > MACRO_LENGTH:
            break
        if after == text:
            return text
        text = after
    raise unreadable("has macros that hold each other, or grow too large", line)


def _value(found: "re.Match[str]", commands: Mapping[str, Command], keep: frozenset[str], line: int) -> str:
    name = found[1].lower()
    if name in keep:
        return found[0]
    if name in commands:
        return commands[name].value[:MACRO_LENGTH]
    if found[2] is not None:
        return found[2]
    raise unreadable(f"uses the macro $({found[1]}), which is not defined", line)


def macros(text: str) -> set[str]:
    """Return the names of the macros in a text, in lower case, including a macro whose default contains another."""
    return {found[1].lower() for found in _MACRO_NAME.finditer(text)}


def filled(text: str, values: Mapping[str, str]) -> str:
    """Return the text with each macro replaced by its value. `values` are by names in lower case. Macros without a value stay."""
    return _MACRO.sub(lambda found: values.get(found[1].lower(), found[0]), text)
