"""Parses an HTCondor submit file: commands `name = value`, conditions, includes, and `queue` statements with their items.

Source: the manual of HTCondor on submit files; where it is silent, HTCondor's own parser.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from wms.errors import Rejected, shown
from wms.jobdesc.document import unreadable
from wms.jobdesc.languages.condor_items import ItemList, items_of
from wms.jobdesc.languages.condor_lines import logical_lines
from wms.jobdesc.languages.condor_macros import MacroError, MacroExpansion, calls
from wms.jobdesc.languages.submit_machine import SubmitMachine

QUEUES_LIMIT: Final = 1_000
INCLUDES_LIMIT: Final = 20
VERSION: Final = (25, 0, 0)
"""The version of HTCondor whose meaning is read, for conditions on the version."""

_COMMAND = re.compile(
    r"((?:[+-]|MY\.)?[A-Za-z_][A-Za-z0-9_.]*)\s*(\+?)=(?!=)\s*(.*)", re.DOTALL | re.IGNORECASE
)
_HERE = re.compile(r"([A-Za-z_][A-Za-z0-9_.]*)\s*@=\s*([A-Za-z0-9_]+)")
_QUEUE = re.compile(r"queue(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)
_CONDITION = re.compile(r"(if|elif|else|endif)(?:\s+(.*))?", re.IGNORECASE)
_INCLUDE = re.compile(r"include(?:\s+(ifexist))?\s*:\s*(.*)", re.IGNORECASE)
_REFUSED = re.compile(r"(include|use|warning|error)\b[^=]*:", re.IGNORECASE)
_VERSION = re.compile(r"version\s*(!?)(>=|<=|==|=|>|<)\s*v?([0-9]+)\.([0-9]+)(?:\.([0-9]+))?", re.IGNORECASE)
_TRUTHS: Final = {
    "true": True,
    "yes": True,
    "t": True,
    "y": True,
    "false": False,
    "no": False,
    "f": False,
    "n": False,
}


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
    """A `queue` statement: the commands in effect at its line, how often each item is queued, and the items."""

    commands: Mapping[str, Command]
    count: int
    items: ItemList
    line: int

    @property
    def jobs(self) -> int:
        """The number of jobs that the statement queues."""
        return self.count * len(self.items.rows)


def parse(text: str, machine: SubmitMachine | None = None) -> list[QueueStatement]:
    """Return the `queue` statements of a submit file, in order. `machine` has the files and variables to which it may refer.

    Raise InvalidDescription if the text is no submit file, or needs of the submit machine what cannot be had.
    """
    parser = _SubmitFile(machine)
    parser.read(text)
    if not parser.queues:
        raise unreadable("has no queue statement", remedy="end it with: queue")
    return parser.queues


class _SubmitFile:
    """What was read of a submit file so far."""

    def __init__(self, machine: SubmitMachine | None) -> None:
        self._machine = machine
        self._commands = dict[str, Command]()
        self._included = 0
        self.queues = list[QueueStatement]()

    def read(self, text: str) -> None:
        lines, conditions, at = logical_lines(text), list[tuple[bool, bool]](), 0
        while at < len(lines):
            number, line = lines[at]
            at += 1
            try:
                if (found := _CONDITION.fullmatch(line)) and not _COMMAND.fullmatch(line):
                    self._condition(found[1].lower(), found[2] or "", conditions)
                elif all(each for each, _ in conditions):
                    at = self._statement(line, number, lines, at)
            except MacroError as fault:
                raise unreadable(str(fault), number) from None
        if conditions:
            raise unreadable("has an if without endif")

    def _statement(self, line: str, number: int, lines: Sequence[tuple[int, str]], at: int) -> int:
        """Take the statement in `line`, which may go on in the lines from index `at`. Return the index of the line after it."""
        if (found := _QUEUE.fullmatch(line)) and not _COMMAND.fullmatch(line):
            return self._queue(found[1] or "", number, lines, at)
        if found := _HERE.fullmatch(line):
            end = next((n for n in range(at, len(lines)) if lines[n][1] == f"@{found[2]}"), None)
            if end is None:
                raise MacroError(f"has no line @{found[2]} that ends a value")
            self._define(found[1], "\n".join(each for _, each in lines[at:end]), number)
            return end + 1
        if found := _COMMAND.fullmatch(line):
            before = self._commands.get(found[1].lower()) if found[2] else None
            self._define(found[1], f"{before.value} {found[3]}" if before else found[3], number)
        elif found := _INCLUDE.fullmatch(line):
            self._include(found[2], optional=bool(found[1]))
        elif _REFUSED.match(line):
            raise MacroError(f"has the statement {shown(line, 60)}, which HTCondor alone can carry out")
        else:
            raise unreadable(f"is no submit file: {shown(line, 60)} is no command", number)
        return at

    def _define(self, name: str, value: str, line: int) -> None:
        """Set a command. A macro of its own name in its value is its value so far; others are replaced when jobs are queued."""
        if name[0] in "+-":
            name, value = f"MY.{name[1:]}", "" if name[0] == "-" else value
        key, at = name.lower(), 0
        before = self._commands[key].value if key in self._commands else ""
        # A value with a macro of the matched machine stays as it is.
        call = calls(value, at) if "$(" in value and "$$(" not in value else None
        while call:
            if call.function or call.body.lower() != key:
                at = call.start + 2
            else:
                value = value[: call.start] + (before or call.default or "") + value[call.end :]
                at = call.start + len(before)
                if "$$(" in value:
                    break
            call = calls(value, at)
        self._commands[key] = Command(name, value.strip(), line)

    def _lookup(self, name: str) -> str | None:
        found = self._commands.get(name)
        return None if found is None else found.value

    def _expanded(self, text: str) -> str:
        return MacroExpansion(self._lookup, self._machine).expand(text).strip()

    def _condition(self, word: str, said: str, conditions: list[tuple[bool, bool]]) -> None:
        """Take an `if`, `elif`, `else` or `endif`. Each entry of `conditions` says whether its lines are read, and whether any were."""
        outer = all(each for each, _ in conditions[: len(conditions) - (word != "if")])
        if word == "if":
            truth = outer and self._truth(said)
            conditions.append((truth, truth))
            return
        if not conditions:
            raise MacroError(f"has an {word} without if")
        _, any_before = conditions.pop()
        if word != "endif":
            truth = outer and not any_before and (word == "else" or self._truth(said))
            conditions.append((truth, truth or any_before))

    def _truth(self, said: str) -> bool:
        text = self._expanded(said)
        if negated := text.startswith("!"):
            text = text[1:].strip()
        lower = text.lower()
        if found := _VERSION.fullmatch(text):
            truth = _compared(found)
        elif lower.split(None, 1)[:1] == ["defined"]:
            truth = self._is_defined(lower[7:].strip())
        elif lower in _TRUTHS or not text:
            truth = _TRUTHS.get(lower, False)
        elif re.fullmatch(r"[+-]?[0-9]*\.?[0-9]+", text):
            truth = float(text) != 0
        else:
            raise MacroError(f"has the condition {shown(said, 60)}, which HTCondor does not take")
        return truth is not negated

    def _is_defined(self, name: str) -> bool:
        if not re.fullmatch(r"[a-z0-9_.]*", name):
            raise MacroError(f"asks whether {shown(name, 60)} is defined, which is no name")
        return bool(self._lookup(name)) or name in _TRUTHS or name.isdigit()

    def _include(self, said: str, *, optional: bool) -> None:
        path = self._expanded(said)
        self._included += 1
        if self._included > INCLUDES_LIMIT:
            raise MacroError(f"includes more than {INCLUDES_LIMIT} files")
        if path.endswith("|"):
            raise MacroError("includes what a program prints, which HTCondor alone can carry out")
        if self._machine is None:
            raise MacroError(f"includes {shown(path, 100)}, a file of its submit machine")
        try:
            text = self._machine.text(path)
        except Rejected:
            if optional:
                return
            raise
        self.read(text)

    def _queue(self, said: str, number: int, lines: Sequence[tuple[int, str]], at: int) -> int:
        pieces = list[str]()
        if re.search(r"\b(?:in|from|matching)\b[^(]*\((?!.*\)$)", said, re.IGNORECASE | re.DOTALL):
            while at < len(lines) and not lines[at][1].startswith(")"):
                pieces.append(lines[at][1])
                at += 1
            if at == len(lines):
                raise MacroError("has a list of items without a closing bracket")
            at += 1
        count, items = items_of(self._expanded(said), pieces, self._machine)
        self.queues.append(QueueStatement(dict(self._commands), count, items, number))
        if len(self.queues) > QUEUES_LIMIT:
            raise unreadable(f"has more than {QUEUES_LIMIT:,} queue statements", number)
        return at


def _compared(found: "re.Match[str]") -> bool:
    other = (int(found[3]), int(found[4]), int(found[5] or VERSION[2]))
    sign = (other < VERSION) - (other > VERSION)
    truth = {">=": sign >= 0, "<=": sign <= 0, "==": sign == 0, "=": sign == 0, ">": sign > 0, "<": sign < 0}[
        found[2]
    ]
    return truth is not bool(found[1])
