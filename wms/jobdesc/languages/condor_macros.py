"""The macros of HTCondor's submit files: `$(name)`, `$(name:default)` and functions such as `$INT(name,%03d)`.

Source: the manual of HTCondor, «Macro Definitions» and «Function Macros in Configuration»; where it is silent, what `htcondor2.Submit`
expands. Names of macros may be in any case, those of functions not. A macro that is not defined is empty.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from wms.classad.expression import Expression
from wms.classad.folding import fold
from wms.classad.tree import Literal
from wms.errors import Rejected, shown
from wms.jobdesc.languages.submit_machine import SubmitMachine

STEPS_LIMIT: Final = 2_000
"""How many macros may be replaced in one value."""
DEPTH_LIMIT: Final = 10
"""How many brackets may stand within each other in the default of a macro. So each place of a text is read a few times at most."""
LENGTH_LIMIT: Final = 65_536
"""How many characters a value may have. Macros that use each other twice would double it again and again."""
RANDOM: Final = ("RANDOM_CHOICE", "RANDOM_INTEGER")

_START = re.compile(r"\$(\$?)([A-Za-z0-9_]*)\(")
_NAME = re.compile(r"[A-Za-z0-9_.?]*")
_FILE = re.compile(r"F[pdnxqabfwu]*", re.IGNORECASE)
_FORMAT = re.compile(r"[^%]*%[-+ 0#]*[0-9]{0,3}(?:\.[0-9]{0,3})?(?:ll|l|h)?([diouxXeEfFgGs])[^%]*")
_INTEGER = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_BRACKET = re.compile(r"[()]")
_TOKEN = re.compile(rf"(?P<macro>\$\$?(?P<function>[A-Za-z0-9_]*)\()|(?P<word>{_WORD.pattern})|[()]")


class MacroError(Exception):
    """A macro that cannot be expanded, or not here; the text says why."""


class MacroCall(NamedTuple):
    """One macro in a text: its function (empty for `$(name)`), what stands in its brackets, its default, and where it begins and ends."""

    function: str
    body: str
    default: str | None
    start: int
    end: int


def calls(text: str, at: int = 0) -> "MacroCall | None":
    """Return the first macro at or after a place in a text; None if there is none.

    Raise MacroError for `$$(name)`, and for brackets that nest too deep.
    """
    while found := _START.search(text, at):
        call = _call(text, found)
        if call is not None and not (not call.function and call.body.lower() == "dollar"):
            return call
        at = found.end()
    return None


def _call(text: str, found: "re.Match[str]") -> MacroCall | None:
    function, at = found[2], found.end()
    if found[1]:
        raise MacroError(
            f"{shown(text[found.start() : found.start() + 40])} is a value of the machine that runs the job"
        )
    if function in ("", "ENV"):
        name = _NAME.match(text, at)
        assert name is not None
        end = name.end()
        if text[end : end + 1] == ")":
            return MacroCall(function, name[0], None, found.start(), end + 1)
        if text[end : end + 1] != ":":
            return None
        close = _closing(text, at - 1)
        return (
            None
            if close < 0
            else MacroCall(function, name[0], text[end + 1 : close], found.start(), close + 1)
        )
    if function not in _FUNCTIONS and not (function[0] == "F" and _FILE.fullmatch(function)):
        return None
    close = text.find(")", at)
    return None if close < 0 else MacroCall(function, text[at:close], None, found.start(), close + 1)


def _closing(text: str, at: int) -> int:
    """Return the place of the bracket that closes the one at a place; -1: none does. Raise MacroError if brackets nest too deep."""
    depth = 0
    for each in _BRACKET.finditer(text, at):
        depth += 1 if each[0] == "(" else -1
        if depth == 0:
            return each.start()
        if depth > DEPTH_LIMIT:
            raise MacroError(f"has more than {DEPTH_LIMIT} brackets within each other")
    return -1


@lru_cache(maxsize=256)  # each queue statement asks for the same commands
def names_in(text: str) -> frozenset[str]:
    """Return the names, in lower case, of all macros that a text may use: every word within a macro, and each function of chance."""
    found = set[str]()
    depth, macros = 0, list[int]()  # the depths of the brackets of the macros that are open
    for each in _TOKEN.finditer(text):
        if macros and each["word"]:
            found.add(each["word"].lower())
        if each["macro"]:
            found |= {each["function"]} & set(RANDOM)
            if macros:
                found |= {word.lower() for word in _WORD.findall(each["function"])}
            macros.append(depth)
        if each[0] == ")":
            depth -= 1
            if macros and macros[-1] == depth:
                macros.pop()
        elif each[0].endswith("("):
            depth += 1
    return frozenset(found)


class MacroExpansion:
    """Expands the macros in texts. `lookup` returns the value of a macro by its name in lower case, None if it is not defined."""

    def __init__(
        self,
        lookup: Callable[[str], str | None],
        machine: SubmitMachine | None,
        column: "Callable[[str], str | None]" = lambda _: None,
    ) -> None:
        """Make an expansion. `column` may return another text for a whole macro, such as `$INT(x)`, before it is expanded."""
        self._lookup = lookup
        self._machine = machine
        self._column = column

    def expand(self, text: str) -> str:
        """Return a text with all its macros replaced. Raise MacroError if one cannot be."""
        done, size = list[str](), len(text)
        steps, at = 0, 0
        while call := calls(text, at):
            steps += 1
            instead = self._column(text[call.start : call.end])
            value = self._value(call) if instead is None else instead
            done.append(text[at : call.start])
            size += len(value) - (call.end - call.start)
            if steps > STEPS_LIMIT or size > LENGTH_LIMIT:
                raise MacroError("has macros that hold each other, or grow too large")
            if instead is None and "$" in value:
                # It may hold macros, also together with what follows it.
                text, at = value + text[call.end :], 0
            else:
                done.append(value)
                at = call.end
        return re.sub(r"\$\(dollar\)", "$", "".join(done) + text[at:], flags=re.IGNORECASE)

    def _value(self, call: MacroCall) -> str:
        if not call.function:
            return self._lookup(call.body.lower()) or call.default or ""
        if call.function == "ENV":
            return self._variable(call)
        own: Callable[[str], str] | None = {
            "CHOICE": self._choice,
            "RANDOM_CHOICE": self._random_choice,
            "RANDOM_INTEGER": self._random_integer,
            "SUBSTR": self._substring,
            "EVAL": self._evaluated,
        }.get(call.function)
        if own is not None:
            return own(call.body)
        if call.function in _FORMATS:
            return self._formatted(call.function, call.body)
        return self._file(call.function, call.body)

    def _evaluated(self, body: str) -> str:
        return evaluated(self._argument(body))

    def _variable(self, call: MacroCall) -> str:
        found = self._here(call.function).environment.get(call.body)
        if found is None and call.default is None:
            return "UNDEFINED"
        return found or call.default or ""

    def _random_choice(self, body: str) -> str:
        items = self._list(_items(body))
        return items[self._here("RANDOM_CHOICE").draw(len(items))]

    def _here(self, function: str) -> SubmitMachine:
        if self._machine is None:
            raise MacroError(f"${function}() depends on the machine on which the document is submitted")
        return self._machine

    def _argument(self, text: str) -> str:
        """Return the value of a macro if the text names one, else the text itself, expanded."""
        if "$" in text:
            raise MacroError(f"{shown(text, 60)} stands within a function, where HTCondor takes a name")
        found = self._lookup(text.strip().lower())
        return self.expand(text.strip() if found is None else found)

    def _integer(self, text: str, function: str) -> int:
        value = evaluated(self._argument(text))
        if not _INTEGER.fullmatch(value):
            raise MacroError(f"${function}(): {shown(text, 60)} is no whole number")
        return int(value)

    def _list(self, items: Sequence[str]) -> Sequence[str]:
        if len(items) == 1:
            items = _items(self._argument(items[0]))
        if not items:
            raise MacroError("a choice has nothing to choose from")
        return items

    def _choice(self, body: str) -> str:
        which, _, rest = body.partition(",")
        items = self._list(_items(rest))
        index = self._integer(which, "CHOICE")
        if not 0 <= index < len(items):
            raise MacroError(f"$CHOICE(): there is no item {index}")
        return items[index]

    def _random_integer(self, body: str) -> str:
        bounds = _items(body)
        if len(bounds) not in (2, 3) or not all(map(_INTEGER.fullmatch, bounds)):
            raise MacroError("$RANDOM_INTEGER() takes the least and the greatest number, and a step")
        least, most, step = (*map(int, bounds), *([1] * (3 - len(bounds))))
        if step < 1 or least > most:
            raise MacroError("$RANDOM_INTEGER() has no number to choose from")
        return str(least + self._here("RANDOM_INTEGER").draw((step + most - least) // step) * step)

    def _substring(self, body: str) -> str:
        name, *rest = body.split(",")
        text = self._argument(name)
        if len(rest) not in (1, 2):
            raise MacroError("$SUBSTR() takes a name, a start and a length")
        start = self._integer(rest[0], "SUBSTR")
        length = self._integer(rest[1], "SUBSTR") if len(rest) == 2 else len(text)
        start = min(len(text), max(0, start + len(text) if start < 0 else start))
        left = len(text) - start
        length = min(left, max(0, length + left if length < 0 else length))
        return text[start : start + length]

    def _formatted(self, function: str, body: str) -> str:
        name, comma, form = body.partition(",")
        found = _FORMAT.fullmatch(form)
        if comma and (found is None or found[1] not in _FORMATS[function]):
            raise MacroError(f"${function}(): {shown(form, 40)} is no format for it")
        form = re.sub(r"(ll|l|h)(?=[diouxX])", "", form)
        if function == "STRING":
            value = self._argument(name)
            value = evaluated(value) if value.lstrip().startswith('"') else value
            return form % value if comma else value
        if function == "INT":
            number = self._integer(name, function)
            return form % number if comma else str(number)
        try:
            real = float(evaluated(self._argument(name)))
        except ValueError:
            raise MacroError(f"$REAL(): {shown(name, 60)} is no number") from None
        said = form % real if comma else f"{real:.16G}"
        return said if not comma or "." in said else f"{said}.0"

    def _file(self, function: str, body: str) -> str:
        parts = {"BASENAME": "nx", "DIRNAME": "p"}.get(function, function[1:].lower())
        name = self._argument(body).strip('"')
        if set(parts) & set("fwua"):
            raise MacroError(f"${function}() makes a path of the submit machine")
        head, slash, base = name.rpartition("/")
        stem, dot, extension = base.rpartition(".") if "." in base else (base, "", "")
        head += slash
        kept = {
            "": name, "x": dot + extension, "n": stem, "nx": base, "p": head, "npx": name, "np": head + stem, "px": name,
        }  # fmt: skip
        bare, plain = "b" in parts, "".join(sorted(set(parts) & set("pdnx")))
        if not slash and set(plain) & set("nx"):
            plain = plain.replace("p", "").replace("d", "")
        if "d" in plain:
            above = head.rstrip("/").split("/")[-parts.count("d") :] if slash else []
            directory = "".join(f"{each}/" for each in above)
            value = {"d": directory, "dn": directory + stem, "dnx": directory + base}.get(plain)
        else:
            directory, value = head, kept.get(plain)
        if value is None:
            raise MacroError(f"${function}() is a combination that is not read")
        if bare:
            value = value[1:] if plain == "x" else value.removesuffix("/") if plain in ("p", "d") else value
        return f'"{value}"' if "q" in parts else value


_FORMATS: Final = {"INT": "dioxX", "REAL": "eEfFgG", "STRING": "s"}
_FUNCTIONS: Final = frozenset(
    {"CHOICE", *RANDOM, "SUBSTR", "INT", "REAL", "STRING", "EVAL", "BASENAME", "DIRNAME"}
)


def _items(text: str) -> Sequence[str]:
    return [each.strip() for each in text.split(",")] if text.strip() else []


def evaluated(text: str) -> str:
    """Return the value of a ClassAd expression of constants, as text; the text itself if it is none, or has no value."""
    if _INTEGER.fullmatch(text):
        return text.strip()
    try:
        found = fold(Expression.parse(text).tree)
    except Rejected:
        return text
    value = found.value if isinstance(found, Literal) else None
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float | str) else text


HTCONDOR_ALONE: Final = "is an expression that HTCondor alone can evaluate"
"""What is said of a value that is no constant."""


def whole(text: str) -> int | None:
    """Return the whole number that an expression of constants is, such as `4`, `4.0` or `2 * 2`; None if it is none."""
    try:
        number = float(evaluated(text.strip().strip('"')))
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) < 1e15 else None
