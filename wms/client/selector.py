"""Builds selectors of jobs from a user's input: `7`, `100-200`, `1,5,9-12`, and the names of states."""

import difflib
import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

import msgspec

from wms.errors import Rejected, shown
from wms.ids import joined
from wms.job.state import ENDED, State
from wms.messages.commands import Selector

RANGES_LIMIT = 1_000
ID_LIMIT = 2**63 - 1
TEXT_LIMIT = 100_000
NAME_LIMIT = 200

Ranges = tuple[tuple[int, int], ...]

_RANGE = re.compile(r"([0-9]{1,19})(?:-([0-9]{1,19}))?")
_LIVE = frozenset(State) - ENDED
_SETS = {"ended": ENDED - {State.DELETED}, "live": _LIVE}


def select(
    jobs: str | int | Iterable[str | int] = (),
    *,
    owner: str | None = None,
    state: str | Iterable[str] = (),
    site: str | None = None,
    name: str | None = None,
    group: str | None = None,
    submission: str | None = None,
    since: datetime | None = None,
    everything: bool = False,
) -> Selector:
    """Return a selector of the jobs that meet every given condition. Raise Rejected if a condition is malformed.

    `jobs` are ids, ranges and lists of them: `select("1-100,205")`, `select([7, "9-12"])`. `state` is a state's name in any
    case, or `ended` or `live` for all such states. `name` is a pattern with `*` and `?`; `group` is a job group.
    `submission` is the id of one of your submissions. `since` (aware) selects jobs that were submitted or changed their
    state since then. Without any condition, `everything` must be True to select all jobs.
    """
    words = [jobs] if isinstance(jobs, str | int) else list(jobs)
    return Selector(
        ids=ranges(map(str, words)),
        owner=_short("owner", owner),
        states=states([state] if isinstance(state, str) else state),
        site=_short("site", site),
        name=_short("name", name),
        job_group=_short("group", group),
        submission=_short("submission", submission),
        changed_since=since,
        everything=everything,
    )


def ranges(words: Iterable[str]) -> Ranges:
    """Return the ranges of ids that the words denote, in order. Ranges that touch or overlap are joined.

    Raise Rejected if a word is no id or range, or if there are too many ranges.
    """
    found = [_range(part) for word in words for part in _parts(word)]
    merged = joined(found)
    if len(merged) > RANGES_LIMIT:
        raise Rejected(
            "TOO_MANY_RANGES",
            f"{len(merged):,} separate ids and ranges are over {RANGES_LIMIT:,}",
            "select by --name or --state, or in several goes",
        )
    return merged


def states(names: Iterable[str]) -> tuple[State, ...]:
    """Return the states for these names, in any case, each alone or in comma-separated lists.

    Raise Rejected for an unknown name.
    """
    chosen: set[State] = set()
    for name in (part.strip() for word in names for part in word.split(",") if part.strip()):
        chosen |= _states(name)
    return tuple(state for state in State if state in chosen)


def normalised(selector: Selector) -> Selector:
    """Return the selector with its ranges of ids in ascending order. Ranges that touch or overlap are joined.

    Raise TypeError if it is no selector.
    """
    if not isinstance(selector, Selector):
        raise TypeError(
            f"expected a Selector, such as select(7), or a Submission, not {type(selector).__name__}"
        )
    return msgspec.structs.replace(selector, ids=joined(selector.ids))


def nothing_found(selector: Selector) -> Rejected:
    """Return, not raise, the error that no job is selected. It does not reveal whether an id is unknown or another user's."""
    named = in_words(selector.ids) or "that this selects"
    return Rejected("NO_SUCH_JOB", f"there is no job {named}", "`wms jobs` lists yours")


def in_words(found: Ranges) -> str:
    """Return the ranges of ids in the form that users write: `1-5,9`."""
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in found)


def _parts(word: str) -> Sequence[str]:
    if len(word) > TEXT_LIMIT:
        raise Rejected("BAD_SELECTOR", f"a list of jobs of {len(word):,} characters is over {TEXT_LIMIT:,}")
    return [part.strip() for part in word.split(",") if part.strip()]


def _range(part: str) -> tuple[int, int]:
    said = _RANGE.fullmatch(part)
    if said is None:
        known = part.lower() in {*map(str.lower, State), *_SETS}
        usual = "write 7, or 100-200, or 1,5,9-12; names go with --name 'sim*', groups with --group NAME"
        raise Rejected(
            "BAD_SELECTOR",
            f'"{shown(part, 60)}" is neither a job\'s id nor a range of them',
            f"did you mean --state {part}?" if known else usual,
        )
    low, high = int(said[1]), int(said[2] or said[1])
    if low > high:
        raise Rejected("BAD_SELECTOR", f"the range {part} ends before it begins", f"write {high}-{low}")
    if high > ID_LIMIT:
        raise Rejected("BAD_SELECTOR", f"{high} is larger than any job's id")
    return low, high


def _states(name: str) -> AbstractSet[State]:
    known = {state.lower(): frozenset({state}) for state in State} | _SETS
    found = known.get(name.lower())
    if found is None:
        near = difflib.get_close_matches(name.lower()[:64], known, n=1)
        remedy = f"did you mean {near[0].capitalize()}?" if near else f"one of {', '.join(State)}"
        raise Rejected("BAD_SELECTOR", f'"{shown(name, 60)}" is no state of a job', remedy)
    return found


def _short(what: str, value: str | None) -> str | None:
    if value is not None and not (0 < len(value) <= NAME_LIMIT and value.isprintable()):
        raise Rejected(
            "BAD_SELECTOR",
            f'the {what} "{shown(value, 60)}" must be 1 to {NAME_LIMIT} printable characters',
        )
    return value
