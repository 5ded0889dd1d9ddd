"""The words of the ClassAd language: scopes, constants, reserved names, and operators with their precedence."""

from wms.classad.limits import NAME_LENGTH, refused
from wms.classad.tree import NameScope
from wms.classad.value import ERROR, UNDEFINED, Scalar

TEXT_NAME = "wms:text"
"""The name of the attribute in which the library receives a text to evaluate."""
SCOPES = {"my": NameScope.OWN, "self": NameScope.OWN, "other": NameScope.OTHER, "target": NameScope.OTHER}
CONSTANTS: dict[str, Scalar] = {"true": True, "false": False, "undefined": UNDEFINED, "error": ERROR}
RESERVED = frozenset(
    {*SCOPES, *CONSTANTS, "is", "isnt", "parent", "toplevel", "root", "super", "currenttime", TEXT_NAME}
)
"""Words in lower case that no attribute may have as its name; the library gives some of them another meaning."""

LEVELS = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "is": 6, "isnt": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, ">>>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
"""The precedence of each binary operator; a higher number binds closer. All are left-associative."""


def name_fault(name: str) -> str:
    """Return why `name` cannot be the name of an attribute; empty if it can."""
    if name.lower() in RESERVED:
        return f'"{name}" is a word of the language, and no attribute\'s name'
    if not 0 < len(name) <= NAME_LENGTH or not name.isascii() or not name.isprintable():
        return f"a name has 1 to {NAME_LENGTH} printable ASCII characters"
    return ""


def name_checked(name: str, place: str) -> str:
    """Return `name` unchanged. Raise Rejected, with `place` in the message, if it cannot be the name of an attribute."""
    if fault := name_fault(name):
        raise refused("NAME", fault, place)
    return name
