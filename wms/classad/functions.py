"""The functions of the ClassAd language that expressions may call.

The value of each depends on its arguments alone, and is not much larger than the arguments. Hence these are left out:

- `time`, `random`, `userMap` and others that depend on the environment;
- `eval` and `unparse`, which evaluate texts as programs;
- `join`, `replace` and `regexps`, whose values grow as products of their arguments;
- `debug`, which writes a log;
- functions of absolute and relative times.
"""

from typing import NamedTuple


class Function(NamedTuple):
    """The name of a function, its least and most number of arguments, and the kind of its value."""

    name: str
    least: int
    most: int
    gives: str
    """The kind of the value: "truth" (a boolean, undefined or error), "scalar", "text" or "any"."""


_TRUTHS = (
    "isUndefined:1 isError:1 isString:1 isInteger:1 isReal:1 isBoolean:1 isList:1 isClassad:1 "
    "member:2 identicalMember:2 anyCompare:3 allCompare:3 regexp:2-3 regexpMember:2-3 "
    "stringListMember:2-3 stringListIMember:2-3 stringListsIntersect:2-3 "
    "versionLT:2 versionLE:2 versionEQ:2 versionGE:2 versionGT:2 version_in_range:3 bool:1"
)
_SCALARS = (
    "size:1 sum:1 avg:1 min:1 max:1 int:1 real:1 floor:1 ceiling:1 round:1 pow:2 quantize:2 "
    "strcmp:2 stricmp:2 versioncmp:2"
)
_TEXTS = "strcat:0-64 string:1 substr:2-3 toUpper:1 toLower:1"
_ANY = "ifThenElse:3"


def _read(listed: str, gives: str) -> dict[str, Function]:
    found = {}
    for each in listed.split():
        name, _, arity = each.partition(":")
        least, _, most = arity.partition("-")
        found[name.lower()] = Function(name, int(least), int(most or least), gives)
    return found


FUNCTIONS = {
    **_read(_TRUTHS, "truth"),
    **_read(_SCALARS, "scalar"),
    **_read(_TEXTS, "text"),
    **_read(_ANY, "any"),
}
"""The allowed functions by their names in lower case."""

PATTERN_FIRST = frozenset({"regexp", "regexpMember"})
"""The functions whose first argument is a regular expression, and whose third argument is its options."""
