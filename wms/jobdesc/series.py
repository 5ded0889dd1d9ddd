"""Series: a parameter's values given by start, step and factor, as in DIRAC's parametric jobs.

`{start = 10, step = 5, factor = 2, count = 3}` stands for 10, 25, 55: each value is the one before times the factor, plus
the step. Documents may have a series where a list may stand; in a description it has become a list.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, repeat
from typing import Any

from wms.jobdesc.expansion import Expansion
from wms.jobdesc.rules import Finding, below, brief, doubled, number

LENGTH_LIMIT = 1_000_000
NUMBER_BYTES = 24
"""The most bytes that the text of a number takes."""
_DEFAULTS = {"start": 0, "step": 0, "factor": 1}
_LARGEST = 2**63


def expanded(entry: Mapping[str, object], expansion: Expansion) -> tuple[Mapping[str, object], list[Finding]]:
    """Return a job's table with lists in place of its series, and the findings for malformed series.

    A malformed series is left out of the table. A series without a count has as many values as the array has jobs. Raise
    Rejected before any value is made if `expansion` does not allow all of them.
    """
    given = entry.get("parameters")
    if not isinstance(given, Mapping) or not any(isinstance(each, Mapping) for each in given.values()):
        return entry, []
    # What was given twice is not seen any more in the table that is made here.
    findings = [*doubled(entry), *(below(f"parameters{place}", *said) for place, *said in doubled(given))]
    lists = {name: value for name, value in given.items() if not isinstance(value, Mapping)}
    counts = dict[str, int]()
    for name, value in given.items():
        if isinstance(value, Mapping):
            count: Any = value.get("count", entry.get("array"))
            if wrong := _faults(value, count):
                findings += [below(f"parameters.{name}{place}", *said) for place, *said in wrong]
            else:
                counts[name] = count
    expansion.take(sum(counts.values()), NUMBER_BYTES * sum(counts.values()))
    for name, count in counts.items():
        values = tuple(islice(_values({**_DEFAULTS, **given[name]}, count), count))
        if len(values) == count:
            lists[name] = values
        else:
            said = "grows beyond what a number can be", "give fewer values, or a smaller factor"
            findings.append(below(f"parameters.{name}", *said))
    return {**entry, "parameters": {name: lists[name] for name in given if name in lists}}, findings


def _values(said: Mapping[str, Any], count: int) -> Iterable[str]:
    """Return the values of a series in order, up to the first that no number can be."""
    value, step, factor = said["start"], said["step"], said["factor"]
    if factor != 1 or not isinstance(value, int) or not isinstance(step, int):
        return map(repr, _numbers(value, step, factor))
    if not step:
        return repeat(repr(value), count)
    end = value + step * count
    return map(repr, range(value, max(-_LARGEST + 1, min(end, _LARGEST)), step))


def _numbers(value: Any, step: Any, factor: Any) -> Iterator[Any]:
    while abs(value) < _LARGEST:
        yield value
        value = value * factor + step


def _faults(said: Mapping[str, object], count: object) -> list[Finding]:
    strange = [
        below(str(key), "unknown key", "only start, step, factor and count")
        for key in said
        if key not in _KEYS
    ]
    wrong = [
        below(key, f"must be a number, not {brief(said[key])}")
        for key in _DEFAULTS
        if key in said and not _is_number(said[key])
    ]
    if count is None:
        wrong.append(("", "does not say how many values", "say count, or array beside parameters"))
    elif faults := number(1, LENGTH_LIMIT, "values")(count):
        wrong += [(f".count{place}", message, remedy) for place, message, remedy in faults]
    return strange[:10] + wrong


_KEYS = {*_DEFAULTS, "count"}


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value - value == 0 and abs(value) < _LARGEST
