"""Reads JSON strictly: an object, an array of objects, or one object on each line.

Python's parser keeps the last of two equal keys, accepts NaN, and recurses with the nesting of the text. So nesting is
measured before parsing. Keys that are given twice are remembered, and become problems with their place. NaN fails every
rule, because no field may be NaN.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import accumulate

from wms.jobdesc.description import JobDescription
from wms.jobdesc.document import DEPTH_LIMIT, SIZE_LIMIT, Entry, read_entries, read_tree, text_of, unreadable
from wms.jobdesc.expansion import Expansion
from wms.jobdesc.problem import PROBLEMS_LIMIT, Problem
from wms.jobdesc.rules import Doubled

# Up to the first error of the text this finds exactly the parser's strings, for a string holds no line end. One that is
# not closed is taken to the end of its line: looking for its end again from each later quote would be quadratic.
_STRING = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*"?')
_NO_BRACKET = re.compile(r"[^][{}]+")
_DELTA = {"[": 1, "{": 1, "]": -1, "}": -1}
_CHUNK = 65_536


def read_json(
    data: bytes, limit: int = SIZE_LIMIT, expansion: Expansion | None = None
) -> list[JobDescription]:
    """Return the descriptions of a JSON document of at most `limit` bytes.

    `expansion` bounds what its series and defaults make of few bytes; None: as on its user's own machine. Raise
    InvalidDescription, with every problem of every job, if there is one. Raise Rejected if the document is too large, not
    UTF-8, makes too many jobs, or expands too far.
    """
    text = text_of(data, limit)
    lines = text.split("\n")
    if _is_lines(lines):
        found: list[Problem] = []
        return read_entries(_parsed_lines(lines, found), found=found, expansion=expansion)
    return read_tree(_parsed(text), expansion)


def table_of(data: bytes, limit: int = SIZE_LIMIT) -> Mapping[str, object]:
    """Parse a JSON document of at most `limit` bytes that is one object, and return this object.

    Raise InvalidDescription if the document is no JSON, or no object. Raise Rejected if the document is too large, or not
    UTF-8.
    """
    tree = _parsed(text_of(data, limit))
    if not isinstance(tree, Mapping):
        raise unreadable("must be a table")
    return tree


def too_deep(text: str, strings: re.Pattern[str] = _STRING, limit: int = DEPTH_LIMIT) -> bool:
    """Return whether brackets outside strings are nested more than `limit` levels deep.

    `strings` matches the parts of the text whose brackets do not count. The time is linear in the text, and nothing recurses.
    """
    if text.count("[") + text.count("{") <= limit:
        return False
    brackets = _NO_BRACKET.sub("", strings.sub("", text))
    depth = 0
    for start in range(0, len(brackets), _CHUNK):
        depths = list(accumulate(map(_DELTA.__getitem__, brackets[start : start + _CHUNK]), initial=depth))
        if max(depths) > limit:
            return True
        depth = depths[-1]
    return False


def _is_lines(lines: list[str]) -> bool:
    said = [line for line in lines[:1000] if line.strip()][:2]
    return len(said) == 2 and said[0].lstrip().startswith("{") and said[1].lstrip().startswith("{")


def _parsed_lines(lines: list[str], found: list[Problem]) -> Iterator[Entry]:
    index = 0
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        place = f"jobs[{index}]"
        index += 1
        try:
            entry = _decoded(line)
        except ValueError as error:
            found.append(Problem(place=place, message=_reason(error), line=number))
            if len(found) >= PROBLEMS_LIMIT:
                return
        else:
            yield place, number, entry


def _parsed(text: str) -> object:
    try:
        return _decoded(text)
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise unreadable(_reason(error), line) from None


def _decoded(text: str) -> object:
    if too_deep(text):
        raise ValueError(f"is nested deeper than {DEPTH_LIMIT} levels")
    return _DECODER.decode(text)


def _reason(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"is not JSON: {error.msg}, column {error.colno}"
    return str(error)


def _table(pairs: list[tuple[str, object]]) -> dict[str, object]:
    table = dict(pairs)
    if len(table) == len(pairs):
        return table
    seen, twice = set[str](), dict[str, None]()
    for key, _ in pairs:
        if key in seen:
            twice[key] = None
        seen.add(key)
    doubled = Doubled(table)
    doubled.keys_given_twice = tuple(twice)[:10]
    return doubled


def _integer(digits: str) -> int:
    # Python refuses to convert very long ones, and is slow with long ones; out of every range, any such will do.
    if len(digits) <= 32:
        return int(digits)
    return -(10**32) if digits.startswith("-") else 10**32


_DECODER = json.JSONDecoder(object_pairs_hook=_table, parse_int=_integer)
