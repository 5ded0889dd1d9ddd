"""The rules of single fields: type, range, length, characters. A rule returns everything that is wrong with a value.

A rule takes a value of any type, as a parser or a program may give it. It returns findings: (place below the value, message,
remedy). Sizes are checked before contents. For a valid value no text is built, so the check is cheap.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from wms.classad.expression import Expression
from wms.classad.tokens import checked
from wms.classad.tree import is_no_condition
from wms.errors import Rejected, shown
from wms.jobdesc.predecessors import ID_LIMIT, RANGES_LIMIT, count, ranges_of

Finding: TypeAlias = tuple[str, str, str]
Rule: TypeAlias = Callable[[object], Sequence[Finding]]

FINE: tuple[Finding, ...] = ()
SHOWN = 60
IDS_LENGTH = 16_384
"""How many characters one text with a list of job ids may have."""

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""The control characters, which no text may have."""
_HEX = re.compile(r"[0-9a-f]{64}")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")


class Doubled(dict[str, object]):
    """A parsed table in whose text some keys were given more than once. It has the names of these keys, but not their places."""

    keys_given_twice: tuple[str, ...] = ()


def doubled(table: object) -> Sequence[Finding]:
    """Return a finding for each key that was given more than once in the text of a table."""
    if not isinstance(table, Doubled):
        return FINE
    return [below(key, "the key is given twice", "keep one of them") for key in table.keys_given_twice]


def below(key: str, message: str, remedy: str = "") -> Finding:
    """Return a finding about the key of a table. Its place is `key`, below the place of the table."""
    return (f".{shown(key, SHOWN)}", message, remedy)


def brief(value: object) -> str:
    """Return a short description of a value of any type and size, such as `the number 7`."""
    match value:
        case bool() | None:
            said = {True: "true", False: "false", None: "nothing"}[value]
        case str():
            said = f'the text "{shown(value, SHOWN)}"'
        case int() if value.bit_length() > 64:
            said = "so large a number" if value > 0 else "so small a number"
        case int():
            said = f"the number {value:,}"
        case float():
            said = f"the number {value}"
        case list() | tuple():
            said = "a list"
        case Mapping():
            said = "a table"
        case _:
            said = f"a {type(value).__name__}"
    return said


def truth(value: object) -> Sequence[Finding]:
    """Return a finding if the value is no boolean; empty if it is one."""
    return FINE if isinstance(value, bool) else [("", f"must be true or false, not {brief(value)}", "")]


def number(low: int, high: int, unit: str = "", remedy: str = "") -> Rule:
    """Return the rule that a value is a whole number from `low` to `high`. `unit` and `remedy` are used in the texts of its findings."""
    of = f" {unit}" if unit else ""

    def rule(value: object) -> Sequence[Finding]:
        if type(value) is int:
            if low <= value <= high:
                return FINE
            return [("", f"must be from {low:,} to {high:,}{of}, not {brief(value)}", remedy)]
        plain = (
            f"write {value} without quotes"
            if isinstance(value, str) and _INTEGER.fullmatch(value)
            else remedy
        )
        return [("", f"must be a whole number{' of' + of if of else ''}, not {brief(value)}", plain)]

    return rule


def optional(rule: Rule) -> Rule:
    """Return the rule that a value is None or obeys `rule`."""
    return lambda value: FINE if value is None else rule(value)


def text(limit: int, *, least: int = 0) -> Rule:
    """Return the rule that a value is a text of `least` to `limit` characters, such as an argument of the payload.

    It may have any characters, line ends and tabs included, but no other control characters.
    """

    def rule(value: object) -> Sequence[Finding]:
        if not isinstance(value, str):
            return _no_text(value)
        if not least <= len(value) <= limit:
            return [_length(len(value), least, limit)]
        if value.isprintable() or (found := CONTROLS.search(value)) is None:
            return FINE
        return [_control(value, found.start())]

    return rule


def line(limit: int, *, least: int = 0) -> Rule:
    """Return the rule that a value is one line of `least` to `limit` printable characters."""

    def rule(value: object) -> Sequence[Finding]:
        if not isinstance(value, str):
            return _no_text(value)
        if not least <= len(value) <= limit:
            return [_length(len(value), least, limit)]
        if value.isprintable():
            return FINE
        return [_control(value, next(i for i, c in enumerate(value) if not c.isprintable()))]

    return rule


def word(limit: int, pattern: str, says: str) -> Rule:
    """Return the rule that a value is a name of 1 to `limit` characters that matches the regular expression `pattern`.

    `says` describes the pattern in words, for the finding.
    """
    compiled = re.compile(pattern)

    def rule(value: object) -> Sequence[Finding]:
        if not isinstance(value, str):
            return _no_text(value)
        if not 1 <= len(value) <= limit:
            return [_length(len(value), 1, limit)]
        if compiled.fullmatch(value):
            return FINE
        return [("", f"{brief(value)} is no name here", f"use {says}")]

    return rule


def many(rule: Rule, limit: int, *, least: int = 0) -> Rule:
    """Return the rule that a value is a list of `least` to `limit` items, each of which obeys `rule`."""

    def listed(value: object) -> Sequence[Finding]:
        if not isinstance(value, list | tuple):
            remedy = f'write ["{value}"]' if isinstance(value, str) and 0 < len(value) <= SHOWN else ""
            return [("", f"must be a list, not {brief(value)}", shown(remedy))]
        if not least <= len(value) <= limit:
            return [("", f"must have {least:,} to {limit:,} entries, not {len(value):,}", "")]
        return [
            (f"[{i}]{place}", message, remedy)
            for i, item in enumerate(value)
            for place, message, remedy in rule(item)
        ]

    return listed


def texts(limit: int, many_limit: int) -> Rule:
    """Return the rule that a value is a list of 1 to `many_limit` texts of at most `limit` characters.

    The rule is as strict as `many(text(limit), many_limit, least=1)`, and faster.
    """
    listed = many(text(limit), many_limit, least=1)

    def rule(value: object) -> Sequence[Finding]:
        if isinstance(value, list | tuple) and 1 <= len(value) <= many_limit and _all_fine(value, limit):
            return FINE
        return listed(value)

    return rule


def _all_fine(values: Sequence[Any], limit: int) -> bool:
    try:
        whole = "".join(values)
    except TypeError:
        return False  # one is no text
    return max(map(len, values)) <= limit and whole.isprintable()


def expression(limit: int, *, condition: bool = False) -> Rule:
    """Return the rule that a value is empty or a ClassAd expression of at most `limit` characters.

    A `condition` is no constant number or text, list, record or sum: nothing would ever meet it.
    """

    def rule(value: object) -> Sequence[Finding]:
        if not isinstance(value, str):
            return _no_text(value)
        if len(value) > limit:
            return [_length(len(value), 0, limit)]
        try:
            if value and condition & is_no_condition(Expression.parse(value).tree):
                return [("", "is no condition: it is never true", "compare by ==, <, > or =?=")]
        except Rejected as fault:
            return [("", fault.message, fault.remedy)]
        return FINE

    return rule


def attribute(items: int) -> Rule:
    """Return the rule that a value can be an attribute of a ClassAd.

    Such a value is a boolean, a number or a text, or a list of at most `items` of these.
    """
    listed = many(_plain, items)

    def rule(value: object) -> Sequence[Finding]:
        return listed(value) if isinstance(value, list | tuple) else _plain(value)

    return rule


def _plain(value: object) -> Sequence[Finding]:
    match value:
        case bool():
            return FINE
        case int() if -(2**63) <= value < 2**63:
            return FINE
        case float() if value - value == 0.0:
            return FINE
        case str():
            return _classad_text(value)
        case _:
            return [("", f"must be a truth, a number or a text, not {brief(value)}", "")]


def _classad_text(value: str) -> Sequence[Finding]:
    try:
        checked(value, "")
    except Rejected as fault:
        return [("", fault.message, fault.remedy)]
    return FINE


def table(key_rule: Rule, value_rule: Rule, limit: int) -> Rule:
    """Return the rule that a value is a table of at most `limit` entries.

    Each key obeys `key_rule` and each value `value_rule`.
    """

    def tabled(value: object) -> Sequence[Finding]:
        if not isinstance(value, Mapping):
            return [("", f"must be a table of names and values, not {brief(value)}", "")]
        if len(value) > limit:
            return [("", f"must have at most {limit:,} entries, not {len(value):,}", "")]
        return [
            *doubled(value),
            *(
                below(str(key), message, remedy) if rule is key_rule else _under(key, place, message, remedy)
                for key, item in value.items()
                for rule, checked in ((key_rule, key), (value_rule, item))
                for place, message, remedy in rule(checked)
            ),
        ]

    return tabled


def record(fields: Mapping[str, Rule], *, needed: Sequence[str] = ()) -> Rule:
    """Return the rule that a value is a table or struct with these fields, each of which obeys its own rule.

    The fields in `needed` must be there; the others may be absent. Unknown fields are findings.
    """

    def rule(value: object) -> Sequence[Finding]:
        if isinstance(value, Struct):
            value = asdict(value)
        if not isinstance(value, Mapping):
            return [("", f"must be a table of {', '.join(fields)}, not {brief(value)}", "")]
        strange = [
            below(str(k), "unknown key", f"only {', '.join(fields)}") for k in value if k not in fields
        ]
        missing = [below(key, "is missing") for key in needed if key not in value]
        wrong = [
            _under(key, *finding) for key in fields if key in value for finding in fields[key](value[key])
        ]
        return [*doubled(value), *strange[:10], *missing, *wrong]

    return rule


def sandbox(size_limit: int) -> Rule:
    """Return the rule that a value is the reference to an archive in the sandbox store, of at most `size_limit` bytes."""
    fields = {"sha256": _digest, "size": number(0, size_limit, "bytes"), "directory": _directory}
    return record(fields, needed=("sha256", "size"))


def job_ids(entries: int, jobs: int) -> Rule:
    """Return the rule that a value is a list of job ids: numbers, and texts such as `7,100-200`.

    The list has at most `entries` items, which name at most `jobs` jobs together.
    """
    listed = many(_job_id, entries)

    def rule(value: object) -> Sequence[Finding]:
        if (findings := listed(value)) or not isinstance(value, list | tuple):
            return findings
        if (length := sum(len(each) for each in value if isinstance(each, str))) > IDS_LENGTH:
            return [_length(length, 0, IDS_LENGTH)]
        found = ranges_of(value)
        if len(found) > RANGES_LIMIT:
            return [("", f"are {len(found):,} separate ids and ranges, more than {RANGES_LIMIT:,}", "")]
        if (named := count(found)) > jobs:
            return [("", f"are {named:,} jobs, more than {jobs:,}", "name fewer")]
        return FINE

    return rule


def _job_id(value: object) -> Sequence[Finding]:
    if type(value) is int:
        return FINE if 1 <= value <= ID_LIMIT else [("", f"{brief(value)} is no job's id", "")]
    if not isinstance(value, str):
        return [("", f"must be a job's id, not {brief(value)}", 'write 7, or "100-200"')]
    if len(value) > IDS_LENGTH:
        return [_length(len(value), 0, IDS_LENGTH)]
    try:
        ranges_of([value])
    except ValueError as fault:
        return [("", shown(str(fault)), 'write 7, or "100-200"')]
    return FINE


def pattern(limit: int) -> Rule:
    """Return the rule that a value is a relative path or pattern of files in the job's directory.

    It has 1 to `limit` printable characters, and cannot lead out of the directory.
    """
    printable = line(limit, least=1)

    def rule(value: object) -> Sequence[Finding]:
        if (findings := printable(value)) or not isinstance(value, str):
            return findings
        if value.startswith("/"):
            return [("", "must be relative to the job's directory", "leave the leading / out")]
        if ".." in value.split("/"):
            return [("", 'must stay inside the job\'s directory, and ".." leads out of it', "")]
        return FINE

    return rule


def _directory(value: object) -> Sequence[Finding]:
    if not isinstance(value, str):
        return _no_text(value)
    if value and not _PLAIN_NAME.fullmatch(value):
        return [("", f"{brief(value)} is no plain name", "use letters, digits and . _ -, at most 255")]
    return FINE


def _digest(value: object) -> Sequence[Finding]:
    if isinstance(value, str) and _HEX.fullmatch(value):
        return FINE
    return [("", f"must be 64 lower-case hexadecimal digits, not {brief(value)}", "")]


def _under(key: object, place: str, message: str, remedy: str) -> Finding:
    return (f".{shown(str(key), SHOWN)}{place}", message, remedy)


def _no_text(value: object) -> Sequence[Finding]:
    remedy = f'write "{value}"' if isinstance(value, int) and value.bit_length() <= 64 else ""
    return [("", f"must be a text, not {brief(value)}", remedy.lower())]


def _length(length: int, least: int, limit: int) -> Finding:
    if length < least:
        return ("", "must not be empty", "")
    return ("", f"must be at most {limit:,} characters long, not {length:,}", "")


def _control(value: str, at: int) -> Finding:
    return (
        "",
        f"has the control or unprintable character {shown(value[at])} at position {at}",
        "take it out",
    )
