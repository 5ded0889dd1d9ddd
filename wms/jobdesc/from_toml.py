"""Reads TOML: one job as the document, or many as `[[job]]` with common `[defaults]`. Problems name their line.

The parser of the standard library is plain Python and reports no lines. So the size limit is lower than that of JSON, and
nesting and dotted keys are measured before parsing. Lines are looked up in the text only when there is a problem.
"""

import re
import tomllib
from collections.abc import Sequence

import msgspec

from wms.jobdesc.description import JobDescription
from wms.jobdesc.document import DEPTH_LIMIT, read_tree, text_of, unreadable
from wms.jobdesc.from_json import too_deep
from wms.jobdesc.problem import InvalidDescription, Problem

SIZE_LIMIT = 4 * 1024 * 1024

# Strings of all four kinds, and comments, which may hold quotes as strings may hold a #. What is not closed is taken as far
# as it may go, and the parser refuses it: looking for its end again from each later quote would be quadratic.
_QUIET = re.compile(
    r'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*(?:"{3,5})?'
    r"|'''[^']*+(?:'(?!'')[^']*+)*(?:'{3,5})?"
    r'|"[^"\\\n]*+(?:\\[^\n][^"\\\n]*+)*"?'
    r"|'[^'\n]*+'?"
    r"|#[^\n]*+",
    re.DOTALL,
)
_NO_PATH = re.compile(r"[^.\n=,{}\[\]]+")
_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_HEADER_LIMIT = 1_000
_KEY = re.compile(r"""\s*("[^"\n]*"|'[^'\n]*'|[A-Za-z0-9_-]+)\s*[.=]""")


def read_toml(data: bytes, limit: int = SIZE_LIMIT) -> list[JobDescription]:
    """Return the descriptions of a TOML document of at most `limit` bytes.

    Raise InvalidDescription, with every problem of every job, if there is one. Raise Rejected if the document is too large,
    not UTF-8, or makes too many jobs.
    """
    text = text_of(data, limit)
    tree = _parsed(text)
    try:
        return read_tree(tree)
    except InvalidDescription as refusal:
        raise InvalidDescription(_placed(refusal.problems, text)) from None


def _parsed(text: str) -> object:
    if too_deep(text, _QUIET) or "." * DEPTH_LIMIT in _NO_PATH.sub("", _QUIET.sub("", text)):
        raise unreadable(f"is nested deeper than {DEPTH_LIMIT} levels")
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise unreadable(f"is not TOML: {error}", _line_of(error)) from None


def _line_of(error: ValueError) -> int | None:
    found = re.search(r"at line (\d+)", str(error))
    return int(found[1]) if found else None


def _placed(problems: Sequence[Problem], text: str) -> list[Problem]:
    lines = _lines(text)
    return [
        problem if problem.line else msgspec.structs.replace(problem, line=_nearest(problem.place, lines))
        for problem in problems
    ]


def _nearest(place: str, lines: dict[str, int]) -> int | None:
    # The line of the place itself, or of the nearest thing around it that has one.
    path = place
    while path:
        if path in lines:
            return lines[path]
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return None


def _lines(text: str) -> dict[str, int]:
    """Return the line number (from 1) of each table header and key of a TOML text, by its path, such as `jobs[2].arguments`."""
    # Strings over several lines are blanked, line ends kept: their lines must not look like keys.
    flat = _QUIET.sub(lambda found: "\n" * found[0].count("\n") if "\n" in found[0] else found[0], text)
    lines, prefix, jobs, depth = dict[str, int](), "", -1, 0
    for number, line in enumerate(flat.split("\n"), 1):
        if depth == 0 and len(line) <= _HEADER_LIMIT and (header := _HEADER.fullmatch(line)):
            name = _bare(header[2])
            jobs += header[1] == "[[" and name in {"job", "jobs"}
            prefix = _in_jobs(name, jobs)
            lines.setdefault(prefix, number)
            continue
        if depth == 0 and (key := _KEY.match(line)):
            lines.setdefault(f"{prefix}.{key[1].strip(chr(34) + chr(39))}".lstrip("."), number)
        quiet = _QUIET.sub("", line)
        depth += quiet.count("[") + quiet.count("{") - quiet.count("]") - quiet.count("}")
    return lines


def _bare(name: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in name.split("."))


def _in_jobs(name: str, jobs: int) -> str:
    head, _, rest = name.partition(".")
    if head not in {"job", "jobs"}:
        return name
    place = "jobs" if jobs < 0 else f"jobs[{jobs}]"
    return f"{place}.{rest}" if rest else place
