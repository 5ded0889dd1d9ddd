"""Membership in string lists, expressed by other functions, as the library lacks `stringListMember` and `stringListIMember`.

HTCondor defines both outside its ClassAd library. A list is split at each delimiter, its items are trimmed, and empty items are
dropped. The item to be found is used unchanged. One undefined argument counts as an empty text, two make the result undefined. An
argument of another type makes it an error. For the library, a call is written with `regexp`, `replaceAll` and `stringListsIntersect`
so that it has the same meaning.
"""

import re

from wms.classad.tree import Call, Chain, Conditional, Literal, Node, Unary
from wms.classad.value import ERROR, UNDEFINED, Scalar

MEMBERSHIP = frozenset({"stringListMember", "stringListIMember"})
DEFAULT_DELIMITERS = ", \t\r\n"
_ALLOWED = re.compile(r"[ \t\r\n!-/:-@\[-`{-~]{1,32}")
_EMPTY = Literal("")


def delimiters_allowed(value: Scalar) -> bool:
    """Return whether a value can be the delimiters of a list: a text of 1 to 32 punctuation marks and blanks."""
    return isinstance(value, str) and _ALLOWED.fullmatch(value) is not None


def library_form(call: Call) -> Node:
    """Return an expression that the library can evaluate, with the value of a call of a membership function."""
    item, items = call.arguments[:2]
    delimiters = _delimiters(call)
    both_undefined = Chain("&&", (_call("isUndefined", item), _call("isUndefined", items)))
    item, items = Conditional(item, None, _EMPTY), Conditional(items, None, _EMPTY)
    are_texts = Chain("&&", (_call("isString", item), _call("isString", items)))
    found = _found(item, items, delimiters, any_case=call.function == "stringListIMember")
    return Conditional(both_undefined, Literal(UNDEFINED), Conditional(are_texts, found, Literal(ERROR)))


def _found(item: Node, items: Node, delimiters: str, *, any_case: bool) -> Node:
    # The item must be whole: the library splits it as well.
    no_item = rf"[{_class(delimiters)}]|^\s|\s\z|^\z"
    is_whole = Unary("!", _call("regexp", Literal(no_item), item))
    separator = next((each for each in delimiters if not each.isspace()), delimiters[0])
    among = _normalised(items, delimiters, separator)
    if any_case:
        item, among = _call("toLower", item), _call("toLower", among)
    return Chain("&&", (is_whole, _call("stringListsIntersect", item, among, Literal(separator))))


def _normalised(items: Node, delimiters: str, separator: str) -> Node:
    """Return an expression that normalises a string list: one separator between two items, and no blanks around them."""
    signs = _class(delimiters)
    # A run is looked at from its beginning alone, or many blanks would take their square of steps.
    between = rf"(?<![{signs}\s])(?=\s*[{signs}])[{signs}\s]++"
    replaced = _call("replaceAll", Literal(between), items, Literal(separator))
    return _call("replaceAll", Literal(r"^\s++|(?<!\s)\s++\z"), replaced, _EMPTY)


def _delimiters(call: Call) -> str:
    if len(call.arguments) == 2:
        return DEFAULT_DELIMITERS
    given = call.arguments[2]
    assert isinstance(given, Literal)
    assert isinstance(given.value, str)
    return given.value


def _class(delimiters: str) -> str:
    return "".join(f"\\x{ord(each):02x}" for each in delimiters)


def _call(function: str, *arguments: Node) -> Call:
    return Call(function, arguments)
