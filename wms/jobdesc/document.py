"""Makes descriptions from a parsed document: one job, or many with common defaults. All problems of all jobs are reported at once."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from wms.errors import Rejected
from wms.jobdesc import rules
from wms.jobdesc.array import jobs_in
from wms.jobdesc.conflicts import ARRAY_LIMIT, across
from wms.jobdesc.description import JobDescription
from wms.jobdesc.expansion import Expansion
from wms.jobdesc.problem import PROBLEMS_LIMIT, InvalidDescription, Problem
from wms.jobdesc.series import expanded
from wms.jobdesc.validation import check_fields, problems, remedy_for

SIZE_LIMIT = 16 * 1024 * 1024
DEPTH_LIMIT = 16
DESCRIPTIONS_LIMIT = 100_000
JOBS_LIMIT = ARRAY_LIMIT
"""How many jobs one document may make, including those of its arrays."""

Entry: TypeAlias = tuple[str, int | None, object]
"""One job of a document: its place, its line if known, and its parsed value."""

_MANY = ("jobs", "job", "defaults")


def text_of(data: bytes, limit: int) -> str:
    """Return the text of a document of at most `limit` bytes in UTF-8, without its byte order mark.

    Raise Rejected if the document is larger (DOCUMENT_TOO_LARGE), or not in UTF-8 (NOT_UTF8).
    """
    if len(data) > limit:
        raise Rejected(
            "DOCUMENT_TOO_LARGE",
            f"the document has {len(data):,} bytes, more than {limit:,}",
            "split it, or use an array for jobs that differ by an index",
        )
    try:
        return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Rejected(
            "NOT_UTF8", f"the document is not UTF-8: line {line}, byte {error.start}", "save it as UTF-8"
        ) from None


def unreadable(message: str, line: int | None = None, remedy: str = "") -> InvalidDescription:
    """Return the exception for a document that cannot be parsed. Its one problem has the line if known, and no other place."""
    return InvalidDescription([Problem(place="", message=message, remedy=remedy, line=line)])


def read_tree(tree: object, expansion: Expansion | None = None) -> list[JobDescription]:
    """Return the descriptions of a parsed document: a job, a list of jobs, or a table with `jobs` and `defaults`.

    `expansion` bounds what its series and defaults make of few bytes; None: as on its user's own machine. Raise
    InvalidDescription, with every problem of every job, if there is one. Raise Rejected if the document makes too many jobs
    (TOO_MANY_JOBS) or expands too far (EXPANDS_TOO_FAR).
    """
    expansion = expansion or Expansion()
    if isinstance(tree, Mapping) and any(key in tree for key in _MANY):
        return _read_many(tree, expansion)
    if isinstance(tree, list):
        entries = ((f"jobs[{i}]", None, item) for i, item in enumerate(tree))
        return read_entries(entries, expansion=expansion)
    return read_entries([("", None, tree)], expansion=expansion)


def read_entries(
    entries: Iterable[Entry],
    defaults: Mapping[str, object] | None = None,
    found: list[Problem] | None = None,
    *,
    expansion: Expansion | None = None,
) -> list[JobDescription]:
    """Return the descriptions of the entries, each completed by `defaults`, fields by name (None for none).

    `found` has the problems known so far (None for none); an iterator of entries may add to it what cannot be parsed.
    `expansion` is as for `read_tree`. Raise InvalidDescription, with every problem of every entry and of `found`, if there is
    one. Raise Rejected if the document makes too many jobs (TOO_MANY_JOBS) or expands too far (EXPANDS_TOO_FAR).
    """
    expansion = expansion or Expansion()
    copied = _size_of(defaults) if defaults else 0
    found = [] if found is None else found
    descriptions = list[JobDescription]()
    jobs = 0
    bare: JobDescription | None = None
    for place, line, entry in entries:
        expansion.take(0, copied)
        is_bare = entry == {}
        # Three bytes make such a job, so that it must not take the time of another.
        description, wrong = (bare, []) if is_bare and bare else _read_one(entry, defaults or {}, expansion)
        bare = description if is_bare else bare
        if description is None:
            found += problems(wrong, place, line)
            if len(found) >= PROBLEMS_LIMIT:
                break
        else:
            descriptions.append(description)
            jobs += jobs_in(description)
        check_count(len(descriptions), jobs)
    if found:
        raise InvalidDescription(found[:PROBLEMS_LIMIT])
    return _counted(descriptions)


def check_count(descriptions: int, jobs: int) -> None:
    """Raise Rejected (TOO_MANY_JOBS) if a document has more descriptions or jobs than one may have."""
    if descriptions > DESCRIPTIONS_LIMIT:
        raise _too_many(f"more than {DESCRIPTIONS_LIMIT:,} descriptions")
    if jobs > JOBS_LIMIT:
        raise _too_many(f"{jobs:,} jobs, more than {JOBS_LIMIT:,}")


def _read_one(
    entry: object, defaults: Mapping[str, object], expansion: Expansion
) -> tuple[JobDescription | None, list[rules.Finding]]:
    if not isinstance(entry, Mapping):
        return None, [("", f"a job must be a table, not {rules.brief(entry)}", "")]
    entry, wrong = expanded(entry, expansion)
    wrong += check_fields(entry)
    fields = _over(defaults, entry) if defaults else entry
    if "executable" not in fields:
        wrong.append((".executable", "is missing", "say which program to run"))
    if wrong:
        return None, wrong
    description = msgspec.convert(fields, JobDescription)
    wrong = across(description)
    return (None, wrong) if wrong else (description, [])


def _read_many(tree: Mapping[str, object], expansion: Expansion) -> list[JobDescription]:
    known = problems(_strange_keys(tree))
    defaults = tree.get("defaults", {})
    if not isinstance(defaults, Mapping):
        known += problems([("", f"must be a table, not {rules.brief(defaults)}", "")], "defaults")
        defaults = {}
    defaults, wrong = expanded(defaults, expansion)
    if wrong := [*wrong, *check_fields(defaults)]:
        # Told once, here; each job is then checked as if they had not been there.
        known += problems(wrong, "defaults")
        defaults = {}.fromkeys(["executable"], "") if "executable" in defaults else {}
    return read_entries(_entries(tree), defaults, known, expansion=expansion)


def _size_of(defaults: Mapping[str, object]) -> int:
    return len(msgspec.json.encode(defaults))


def _strange_keys(tree: Mapping[str, object]) -> Iterator[rules.Finding]:
    yield from rules.doubled(tree)
    for key in tree:
        if key not in _MANY:
            yield rules.below(key, "unknown key beside jobs and defaults", remedy_for(key, _MANY))
    if "jobs" in tree and "job" in tree:
        yield rules.below("job", "stands beside jobs, which means the same", "use one of them")
    elif "jobs" not in tree and "job" not in tree:
        yield rules.below("defaults", "there are defaults but no job", "add a [[job]] for each job")


def _entries(tree: Mapping[str, object]) -> Iterator[Entry]:
    jobs = tree.get("jobs", tree.get("job", []))
    if isinstance(jobs, list):
        return ((f"jobs[{i}]", None, job) for i, job in enumerate(jobs))
    return iter([("jobs", None, jobs)])


def _over(defaults: Mapping[str, object], entry: Mapping[str, object]) -> dict[str, object]:
    merged = {**defaults, **entry}
    below, above = defaults.get("environment"), entry.get("environment")
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        merged["environment"] = {**below, **above}
    return merged


def _counted(descriptions: list[JobDescription]) -> list[JobDescription]:
    if not descriptions:
        raise unreadable("the document has no job in it", remedy="describe at least one, with its executable")
    return descriptions


def _too_many(what: str) -> Rejected:
    return Rejected("TOO_MANY_JOBS", f"the document makes {what}", "submit it in several parts")
