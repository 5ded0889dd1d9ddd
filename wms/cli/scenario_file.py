"""Reads the scenario files of `wms simulate`. Each is checked completely, so that all problems are shown at once."""

import difflib
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from wms.errors import Rejected, shown
from wms.matching.limits import EACH
from wms.simulation.scenario import Scenario
from wms.simulation.workload import Workload, elements_for

DEFAULT = "default"
SIZE_LIMIT = 1_000_000
NAMED = 60
"""How many characters of a name are shown in a problem."""


def read_scenarios(paths: Sequence[Path], workload: Workload) -> list[Scenario]:
    """Return the scenarios of the files, which must have different names.

    Raise Rejected, with every problem of all files, if there is one, such as a site that is not in `workload`.
    """
    found: list[Scenario] = []
    problems: list[str] = []
    for path in paths:
        scenario, wrong = _read(path)
        wrong = wrong or list(_unknown(scenario, workload))
        problems += [f"{path}: {each}" for each in wrong]
        found.append(scenario)
    problems += _twice(found)
    if len(problems) == 1:
        raise Rejected("BAD_SCENARIO", problems[0], "`wms simulate --help` shows what a scenario may say")
    if problems:
        raise Rejected(
            "BAD_SCENARIO",
            f"{len(problems)} things are wrong with the scenarios",
            "`wms simulate --help` shows what a scenario may say",
            tuple(problems),
        )
    return found


def _twice(found: Sequence[Scenario]) -> list[str]:
    names = [each.name for each in found]
    twice = sorted({name for name in names if names.count(name) > 1})
    return [f"two scenarios are called {name!r}: say name = ... in their files" for name in twice]


def _read(path: Path) -> tuple[Scenario, list[str]]:
    """Return the scenario of a file, and its problems as texts. If there are problems, the scenario has the default values."""
    if str(path) == DEFAULT:
        return Scenario(), []
    named = msgspec.structs.replace(Scenario(), name=path.stem)
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
        if len(data) > SIZE_LIMIT:
            return named, [f"is larger than {SIZE_LIMIT:,} bytes"]
        table = tomllib.loads(data.decode())
    except OSError as error:
        return named, [f"{error.strerror}: name a scenario's file with --scenario, or {DEFAULT}"]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        return named, [f"is invalid TOML: {error}"]
    problems = list(_problems(table, Scenario, ""))
    if problems:
        return named, problems
    found = msgspec.convert(table, Scenario, strict=False)
    return (found if found.name != DEFAULT else msgspec.structs.replace(found, name=path.stem)), []


def _problems(value: Any, kind: Any, place: str) -> Iterator[str]:
    """Yield the problems of `value`, a part of a scenario that must be of the type `kind`. Each begins with its path, `place`."""
    told = False
    for each in _parts(value, kind, place):
        told = True
        yield each
    if told:
        return
    try:
        msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        yield f"{place}: {error}" if place else str(error)


def _parts(value: Any, kind: Any, place: str) -> Iterator[str]:
    """Yield the problems of the fields or items within `value`, which must be of the type `kind`. `place` is the value's path."""
    plain = _plain(kind)
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct) and isinstance(value, dict):
        fields = {field.encode_name: field.type for field in msgspec.structs.fields(plain)}
        for key, part in value.items():
            where = f"{place}.{shown(key, NAMED)}".removeprefix(".")
            if key in fields:
                yield from _problems(part, fields[key], where)
            else:
                yield f"{where}: unknown key{_hint(key, fields)}"
    elif get_origin(plain) is dict and isinstance(value, dict):
        for key, part in value.items():
            yield from _problems(part, get_args(plain)[1], f"{place}.{shown(key, NAMED)}".removeprefix("."))
    elif get_origin(plain) is tuple and isinstance(value, list):
        for n, part in enumerate(value):
            yield from _problems(part, get_args(plain)[0], f"{place}[{n}]")


def _plain(kind: Any) -> Any:
    """Return a type annotation without its `Annotated` bounds, and without None as an alternative."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        rest = [each for each in get_args(kind) if each is not NoneType]
        return _plain(rest[0]) if len(rest) == 1 else kind
    return kind


def _unknown(scenario: Scenario, workload: Workload) -> Iterator[str]:
    """Yield a problem for each group, site and owner in a scenario that is missing in its workload."""
    asked = [scenario.asked(each) for each in {job.requirements for job in workload.arrivals}]
    groups = {f"{each.vo}/{each.owner_group}" for each in asked}
    for vo, group in scenario.groups:
        if (name := f"{vo}/{group}") not in groups:
            yield f"shares.{vo}.{group}: the workload has no such group{_hint(name, groups)}"
    known = {each.site for each in elements_for(workload, scenario.load)}
    for n, rule in enumerate(scenario.sites):
        if rule.site not in known and rule.slots is None:
            hint = _hint(rule.site, known)
            yield f"sites[{n}].site: the workload has no site {rule.site!r}{hint}; a new one says its slots"
    sites = known | {each.site for each in scenario.sites}
    values = {
        "owner": {each.owner for each in asked},
        "owner_group": {each.owner_group for each in asked},
        "vo": {each.vo for each in asked},
    }
    for n, limit in enumerate(scenario.limits):
        if limit.site not in ("", EACH) and limit.site not in sites:
            yield f"limits[{n}].site: there is no site {limit.site!r}{_hint(limit.site, sites)}"
        names = values.get(limit.attribute)
        if names is not None and limit.value != EACH and limit.value not in names:
            what = limit.attribute.replace("_", " ")
            yield f"limits[{n}].value: the workload has no {what} {limit.value!r}{_hint(limit.value, names)}"


def _hint(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name[:NAMED], list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""
