"""Checks of regular expressions that anyone may write: the steps of a match must be bounded by a small power of the text's length.

The library matches by backtracking, so that (a+)+ takes time that doubles with each character. Only a single character, a class, or a
group of fixed text may be repeated. Look-around, back references and recursion are refused.
"""

import re

from wms.classad.limits import refused

LENGTH = 512
REPEATS = 4
BOUND = 100

_PARTS = re.compile(
    r"""(?P<bad>\\[0-9gkKQERXpPCNGZAzcxou]|\(\*|\(\?(?!:)|\[\[?[:.=])
    |(?P<one>\\.|\[\^?\]?(?:\\.|[^\]\\\[])*\]|[^\\()\[\]{}*+?|^$])
    |(?P<edge>[\^$]) |(?P<open>\((?:\?:)?) |(?P<close>\)) |(?P<bar>\|)
    |(?P<repeat>[*+?]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\})(?P<lazy>[?+]?)
    |(?P<plain>[{}\]])""",
    re.VERBOSE | re.DOTALL,
)


def power(pattern: str, place: str) -> int:
    """Return the exponent k if a search for the pattern in a text of length n takes at most about n^k steps.

    Raise Rejected, with `place` in the message, if there is no such bound or if it is too large.
    """
    if len(pattern) > LENGTH:
        raise refused(
            "PATTERN", f"a regular expression of {len(pattern)} characters, {LENGTH} are allowed", place
        )
    repeats = _repeats(pattern, place)
    if repeats > REPEATS:
        raise refused("PATTERN", f"a regular expression with {repeats} repeats, {REPEATS} are allowed", place)
    anchored = pattern.startswith(("^", ".*")) and "|" not in pattern
    return max(1, repeats if anchored else repeats + 1)


def _repeats(pattern: str, place: str) -> int:
    repeats = 0
    open_groups: list[bool] = []  # for each open group, whether it may be repeated
    before = "start"  # what a repeat would repeat: "one", "fixed" (a group), "loose" (a group not to be), or nothing
    at = 0
    while at < len(pattern):
        part = _PARTS.match(pattern, at)
        kind = part.lastgroup if part else None
        if part is None or kind == "bad":
            raise refused("PATTERN", f"a regular expression must not have {pattern[at : at + 8]!r}", place)
        at = part.end()
        if part["repeat"]:
            many = _is_many(part["repeat"], place)
            if before not in {"one", "fixed"} and (many or before != "loose"):
                raise refused(
                    "PATTERN", f"a regular expression must not repeat what stands before {part[0]!r}", place
                )
            repeats += many
            open_groups = [False] * len(open_groups)
            before = "repeated"
        elif kind == "open":
            open_groups.append(True)
            before = "start"
        elif kind == "close":
            if not open_groups:
                raise refused("PATTERN", "a regular expression with a bracket too many", place)
            before = "fixed" if open_groups.pop() else "loose"
        elif kind == "bar":
            open_groups = [False] * len(open_groups)
            before = "start"
        else:
            before = "start" if kind == "edge" else "one"
    if open_groups:
        raise refused("PATTERN", "a regular expression with an open bracket", place)
    return repeats


def _is_many(repeat: str, place: str) -> bool:
    """Return whether a repeat allows more than one occurrence. Raise Rejected, with `place`, if its count is too large."""
    if max((int(number) for number in re.findall("[0-9]+", repeat)), default=0) > BOUND:
        raise refused("PATTERN", f"a regular expression that repeats more than {BOUND} times", place)
    return repeat != "?"
