"""Validation of a job description as a whole: every problem at once, each with its place and a remedy."""

import difflib
import heapq
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

from wms.jobdesc import brokering_rules, rules
from wms.jobdesc.conflicts import ARRAY_LIMIT, INPUTS_LIMIT, NAME_LIMIT, PRIORITY_LIMIT, across
from wms.jobdesc.description import ATTEMPTS_LIMIT, GRACE_TIME_MOST, MIB, JobDescription
from wms.jobdesc.predecessors import OUTPUTS_LIMIT, PREDECESSORS_LIMIT
from wms.jobdesc.problem import Problem
from wms.jobdesc.rules import Finding, Rule, below

YEAR = 366 * 86_400
PROCESSORS_LIMIT = 1024
GPUS_LIMIT = 64
GROUP_LIMIT = 200
"""How many characters the name of a job group may have."""
EXPRESSION_LIMIT = 4_096
"""How many characters `requirements` and `rank` may have."""
FINDINGS_LIMIT = 200
"""The number of findings after which the check of a table stops. A table with more is no description, and computing remedies takes time."""

TEXT_SIZE = 32 * 1024
_TEXT = rules.text(TEXT_SIZE)
_NAME = rules.word(
    255,
    r"[A-Za-z0-9_][A-Za-z0-9_.:/@+=-]*",
    "letters, digits and . _ - : / @ + =, beginning with a letter or digit",
)
_NAMES = rules.many(_NAME, 1_000)
_TAGS = rules.many(
    rules.word(
        255,
        r"(?!(?i:job):)[A-Za-z0-9_][A-Za-z0-9_.:/@+=-]*",
        "letters, digits and . _ - : / @ + =, beginning with a letter or digit, and not with job:",
    ),
    1_000,
)
_VARIABLE = rules.word(
    255, r"(?!WMS_)[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, and not WMS_ at the beginning"
)
_PARAMETER = rules.word(
    64, r"(?!n$)[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, and not n, which is the index"
)
_IN_SECONDS = "write seconds: 1800 is 30 minutes, 108000 is 30 hours"
_WALL_TIME = rules.number(1, YEAR, "seconds", _IN_SECONDS)
_CPU_TIME = rules.number(1, PROCESSORS_LIMIT * YEAR, "seconds", _IN_SECONDS)
_PREDECESSORS = rules.job_ids(1_000, PREDECESSORS_LIMIT)
_ATTRIBUTE = rules.word(
    255, r"[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, and no digit at the beginning"
)
RULES: dict[str, Rule] = {
    "executable": rules.line(4_096, least=1),
    "arguments": rules.many(_TEXT, 10_000),
    "environment": rules.table(_VARIABLE, _TEXT, 1_000),
    "name": rules.line(NAME_LIMIT),
    "cpu_time": _CPU_TIME,
    "wall_time": rules.optional(_WALL_TIME),
    "grace_time": rules.optional(rules.number(0, GRACE_TIME_MOST, "seconds")),
    "memory_mb": rules.optional(rules.number(1, 64 * MIB, "MiB")),
    "max_memory_mb": rules.optional(rules.number(1, 64 * MIB, "MiB")),
    "disk_mb": rules.optional(rules.number(1, 1024 * MIB, "MiB")),
    "processors": rules.number(1, PROCESSORS_LIMIT),
    "min_processors": rules.optional(rules.number(1, PROCESSORS_LIMIT)),
    "max_processors": rules.optional(rules.number(1, PROCESSORS_LIMIT)),
    "gpus": rules.number(0, GPUS_LIMIT),
    "whole_node": rules.truth,
    "sites": _NAMES,
    "banned_sites": _NAMES,
    "grid_ces": _NAMES,
    "stations": rules.many(_NAME, 100),
    "grid_middlewares": _NAMES,
    "platforms": _NAMES,
    "container": brokering_rules.IMAGE,
    "network": brokering_rules.NETWORK,
    "tags": _TAGS,
    "job_type": _NAME,
    "pilot_types": _NAMES,
    "submit_pools": _NAMES,
    "setup": _NAME,
    "requirements": rules.expression(EXPRESSION_LIMIT, condition=True),
    "rank": rules.expression(EXPRESSION_LIMIT),
    "attributes": rules.table(_ATTRIBUTE, rules.attribute(100), 100),
    "priority": rules.number(0, PRIORITY_LIMIT),
    "job_group": rules.line(GROUP_LIMIT),
    "after": _PREDECESSORS,
    "after_any": _PREDECESSORS,
    "input_from": rules.job_ids(1_000, OUTPUTS_LIMIT),
    "max_attempts": rules.number(1, ATTEMPTS_LIMIT),
    "retries": rules.number(0, ATTEMPTS_LIMIT - 1),
    "final_exit_codes": rules.many(rules.number(0, 255), 256),
    "input_sandbox": rules.many(rules.sandbox(1024 * MIB), INPUTS_LIMIT),
    "input_parameters": rules.many(_PARAMETER, 10),
    "output_sandbox": rules.many(rules.pattern(1_024), 1_000),
    "inputs": brokering_rules.INPUTS,
    "outputs": brokering_rules.OUTPUTS,
    "stdin": brokering_rules.FILE_NAME,
    "stdout": brokering_rules.FILE_NAME,
    "stderr": brokering_rules.FILE_NAME,
    "stdout_limit": rules.number(0, 100 * MIB, "bytes"),
    "stderr_limit": rules.number(0, 100 * MIB, "bytes"),
    "array": rules.optional(rules.number(1, ARRAY_LIMIT, "jobs", "submit several smaller arrays")),
    "parameters": rules.table(_PARAMETER, rules.texts(TEXT_SIZE, ARRAY_LIMIT), 20),
    "preferences": brokering_rules.PREFERENCES,
    "index_servers": brokering_rules.INDEX_SERVERS,
    "dispatch": brokering_rules.DISPATCH,
    "coallocate": rules.truth,
    "success_exit_codes": rules.many(rules.number(0, 255), 256, least=1),
}

# Of fields without a plain default (required, or made anew) this is NODEFAULT, which no value is.
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(JobDescription)}
# What other systems call the same thing, lowered and without punctuation.
_OTHER_NAMES = {
    "args": "arguments", "argument": "arguments", "env": "environment", "jobname": "name", "cpu": "cpu_time",
    "maxcputime": "cpu_time", "walltime": "wall_time", "maxwalltime": "wall_time", "time": "wall_time",
    "killwait": "grace_time", "terminationgraceperiodseconds": "grace_time", "jobmaxvacatetime": "grace_time",
    "memory": "memory_mb", "mem": "memory_mb", "ram": "memory_mb", "maxram": "max_memory_mb", "maxmemory": "max_memory_mb", "minram": "memory_mb",
    "disk": "disk_mb", "cores": "processors", "cpus": "processors", "numberofprocessors": "processors",
    "gpu": "gpus", "ngpus": "gpus", "gpucount": "gpus", "numberofgpus": "gpus", "requestgpus": "gpus",
    "minnumberofprocessors": "min_processors", "maxnumberofprocessors": "max_processors", "samstation": "stations",
    "stationname": "stations", "station": "stations", "gridmiddleware": "grid_middlewares", "site": "sites", "bannedsite": "banned_sites", "gridce": "grid_ces", "ce": "grid_ces", "platform": "platforms",
    "tag": "tags", "image": "container", "containerimage": "container", "singularityimage": "container", "type": "job_type", "userpriority": "priority", "maxretries": "retries", "retryuntil": "final_exit_codes", "output": "output_sandbox",
    "input": "input_sandbox", "cmd": "executable",
    "command": "executable", "program": "executable", "count": "array", "exitcodes": "success_exit_codes",
    "jobgroup": "job_group", "batchname": "job_group", "afterok": "after", "afterany": "after_any", "depends": "after",
    "dependency": "after", "dependencies": "after", "dependson": "after", "holdjid": "after_any",
}  # fmt: skip
_IDENTITY = {"owner", "ownergroup", "group", "vo", "user"}


def validate(description: JobDescription, place: str = "") -> list[Problem]:
    """Return all problems of a description; empty if it is valid.

    `place` is put in front of each problem's place: `jobs[3]` for a description within a list.
    """
    findings = [
        (f".{name}{sub}", message, remedy)
        for name, rule in RULES.items()
        if (value := getattr(description, name)) is not _DEFAULTS[name]
        for sub, message, remedy in rule(value)
    ]
    return problems(findings or across(description), place)


def check_fields(fields: Mapping[str, object]) -> list[Finding]:
    """Return what is wrong with each field of a parsed table by itself; unknown keys are wrong, too. Conflicts between fields are not checked."""
    findings = list(rules.doubled(fields))
    for name, value in fields.items():
        rule = RULES.get(name)
        if rule is None:
            findings.append(below(name, "unknown key", remedy_for(name)))
        elif wrong := rule(value):
            findings += [(f".{name}{sub}", message, remedy) for sub, message, remedy in wrong]
        if len(findings) >= FINDINGS_LIMIT:
            break
    return findings


def problems(findings: Iterable[Finding], place: str = "", line: int | None = None) -> list[Problem]:
    """Return the findings as problems. `place` is put in front of the place of each; `line` is their line, None if unknown."""
    return [
        Problem(place=f"{place}{sub}".lstrip("."), message=message, remedy=remedy, line=line)
        for sub, message, remedy in findings
    ]


def remedy_for(unknown: str, known: Sequence[str] = tuple(RULES)) -> str:
    """Return the remedy for the unknown key `unknown`: the most similar of the `known` keys, or the advice to leave it out."""
    # A hostile key may be very long, and there may be many.
    lower = unknown[:64].lower()
    plain = re.sub(r"[^a-z0-9]", "", lower)
    if plain in _IDENTITY:
        return "leave it out: the token says whose job it is"
    same = [name for name in known if name.replace("_", "") == plain]
    other = [name for name in known if name == _OTHER_NAMES.get(plain)]
    near = same or other or _near(lower, known)
    return f'did you mean "{near[0]}"?' if near else "leave it out"


def _near(lower: str, known: Sequence[str]) -> Sequence[str]:
    """Return the most similar of the names, if it is similar at all. Only those with the most common letters are compared in full."""
    letters = frozenset(lower)
    alike = heapq.nsmallest(3, known, key=lambda name: len(letters ^ _letters(name)))
    return difflib.get_close_matches(lower, alike, n=1)


@lru_cache(maxsize=1_000)
def _letters(name: str) -> frozenset[str]:
    return frozenset(name)
