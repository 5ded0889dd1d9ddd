"""Series: a parameter's values given by start, step and factor, as in DIRAC's parametric jobs.

`{start = 10, step = 5, factor = 2, count = 3}` stands for 10, 25, 55: each value is the one before times the factor, plus
the step. Documents may have a series where a list may stand; in a description it has become a list.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from wms.jobdesc.rules import Finding, below, brief, doubled, number

LENGTH_LIMIT = 1_000_000
_DEFAULTS = {"start": 0, "step": 0, "factor": 1}
_LARGEST = 2**63


def expanded(entry: Mapping[str, object]) -> tuple[Mapping[str, object], list[Finding]]:
    """Return a job's table with lists in place of its series, and the findings for malformed series.

    A malformed series is left out of the table. A series without a count has as many values as the array has jobs.
    """
    given = entry.get("parameters")
    if not isinstance(given, Mapping) or not any(isinstance(each, Mapping) for each in given.values()):
        return entry, []
    lists: dict[str, object] = {}
    # What was given twice is not seen any more in the table that is made here.
    findings = [*doubled(entry), *(below(f"parameters{place}", *said) for place, *said in doubled(given))]
    for name, value in given.items():
        if not isinstance(value, Mapping):
            lists[name] = value
            continue
        wrong = _faults(value, entry.get("array"))
        values = [] if wrong else _values(value, value.get("count", entry.get("array")))
        if values is None:
            wrong = [("", "grows beyond what a number can be", "give fewer values, or a smaller factor")]
        elif not wrong:
            lists[name] = tuple(values)
        findings += [below(f"parameters.{name}{place}", *said) for place, *said in wrong]
    return {**entry, "parameters": lists}, findings


def _values(said: Mapping[str, Any], count: Any) -> list[str] | None:
    found = list(islice(_numbers({**_DEFAULTS, **said}), count))
    return [repr(each) for each in found] if len(found) == count else None


def _numbers(said: Mapping[str, Any]) -> Any:
    value, step, factor = said["start"], said["step"], said["factor"]
    while abs(value) < _LARGEST:
        yield value
        value = value * factor + step


def _faults(said: Mapping[str, object], array: object) -> list[Finding]:
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
    count = said.get("count", array)
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
