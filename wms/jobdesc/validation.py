"""Validation of a description as a whole: every problem at once, each with its place and a remedy."""

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import filterfalse

import msgspec

from wms.classad.expression import Expression
from wms.errors import Rejected
from wms.jobdesc import rules
from wms.jobdesc.array import ARCHIVE, INDEX, PLACEHOLDER, is_array
from wms.jobdesc.description import MIB, JobDescription
from wms.jobdesc.offering import large_offers
from wms.jobdesc.predecessors import OUTPUTS_LIMIT, PREDECESSORS_LIMIT, RANGES_LIMIT, count, predecessors_of
from wms.jobdesc.problem import Problem
from wms.jobdesc.rules import Finding, Rule, below
from wms.jobdesc.stations import required_text

ARRAY_LIMIT = 1_000_000
TEXT_LIMIT = 128 * 1024
"""Bytes of one job's arguments, environment and output patterns together, placeholders replaced."""
PARAMETERS_LIMIT = 64 * MIB
"""Bytes of all values of all parameters."""
YEAR = 366 * 86_400
NAME_LIMIT = 255

INPUTS_LIMIT = 100
"""Archives that are unpacked for one job."""
GROUP_LIMIT = 200
"""Characters of the name of a job group."""
FINDINGS_LIMIT = 200
"""A table with more is no description at all, and remedies cost time."""

TEXT_SIZE = 32 * 1024
_TEXT = rules.text(TEXT_SIZE)
_NAME = rules.word(
    255,
    r"[A-Za-z0-9_][A-Za-z0-9_.:/@+=-]*",
    "letters, digits and . _ - : / @ + =, beginning with a letter or digit",
)
_NAMES = rules.many(_NAME, 1_000)
_VARIABLE = rules.word(
    255, r"(?!WMS_)[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, and not WMS_ at the beginning"
)
_PARAMETER = rules.word(
    64, r"(?!n$)[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, and not n, which is the index"
)
_TIME = rules.number(1, YEAR, "seconds")
_PREDECESSORS = rules.job_ids(1_000, PREDECESSORS_LIMIT)
_EXPRESSION = rules.expression(16_384)
ATTRIBUTES_LIMIT = 16_384
"""Characters of all own attributes and their values."""
_ATTRIBUTE = rules.word(
    255, r"[A-Za-z_][A-Za-z0-9_]*", "letters, digits and _, and no digit at the beginning"
)
TOLD = {
    "setup": "setup", "jobtype": "job_type", "cputime": "cpu_time", "numberofprocessors": "processors",
    "minram": "memory_mb", "imagesize": "memory_mb", "maxram": "max_memory_mb", "mindisk": "disk_mb", "tags": "tags",
    "requirements": "requirements", "rank": "rank",
    **dict.fromkeys((
        "owner", "ownergroup", "virtualorganisation", "certificatesubject", "voms_fqan", "voms_fqans",
        # What other systems call these: nobody is to be taken for somebody else by a name that a site knows them by.
        "user", "userid", "ownerdn", "ownername", "dn", "userdn", "vo", "virtualorganization", "group", "fqan", "fqans",
        "accountinggroup", "acctgroup", "acctgroupuser", "osuser", "x509userproxysubject", "x509userproxyvoname",
        "x509userproxyfirstfqan", "x509userproxyfqan", "x509userproxyemail", "authtokensubject", "authtokenissuer",
        "authtokengroups", "authtokenscopes", "authtokenid", "scitokensfile",
    ), ""),
}  # fmt: skip
"""Attributes of a job's ad, in lower case, that are filled from its description, by what; empty: from its token."""

RULES: dict[str, Rule] = {
    "executable": rules.line(4_096, least=1),
    "arguments": rules.many(_TEXT, 10_000),
    "environment": rules.table(_VARIABLE, _TEXT, 1_000),
    "name": rules.line(NAME_LIMIT),
    "cpu_time": _TIME,
    "wall_time": rules.optional(_TIME),
    "memory_mb": rules.optional(rules.number(1, 64 * MIB, "MiB")),
    "max_memory_mb": rules.optional(rules.number(1, 64 * MIB, "MiB")),
    "disk_mb": rules.optional(rules.number(1, 1024 * MIB, "MiB")),
    "processors": rules.number(1, 1024),
    "min_processors": rules.optional(rules.number(1, 1024)),
    "max_processors": rules.optional(rules.number(1, 1024)),
    "whole_node": rules.truth,
    "sites": _NAMES,
    "banned_sites": _NAMES,
    "grid_ces": _NAMES,
    "stations": rules.many(_NAME, 100),
    "grid_middlewares": _NAMES,
    "platforms": _NAMES,
    "tags": _NAMES,
    "job_type": _NAME,
    "pilot_types": _NAMES,
    "submit_pools": _NAMES,
    "setup": _NAME,
    "requirements": _EXPRESSION,
    "rank": _EXPRESSION,
    "attributes": rules.table(_ATTRIBUTE, rules.attribute(100), 100),
    "priority": rules.number(0, 10),
    "job_group": rules.line(GROUP_LIMIT),
    "after": _PREDECESSORS,
    "after_any": _PREDECESSORS,
    "input_from": rules.job_ids(1_000, OUTPUTS_LIMIT),
    "max_attempts": rules.number(1, 100),
    "input_sandbox": rules.many(rules.sandbox(1024 * MIB), INPUTS_LIMIT),
    "input_parameters": rules.many(_PARAMETER, 10),
    "output_sandbox": rules.many(rules.pattern(1_024), 1_000),
    "stdout_limit": rules.number(0, 100 * MIB, "bytes"),
    "stderr_limit": rules.number(0, 100 * MIB, "bytes"),
    "array": rules.optional(rules.number(1, ARRAY_LIMIT, "jobs", "submit several smaller arrays")),
    "parameters": rules.table(_PARAMETER, rules.texts(TEXT_SIZE, ARRAY_LIMIT), 20),
    "success_exit_codes": rules.many(rules.number(0, 255), 256, least=1),
}

# Of fields without a plain default (required, or made anew) this is NODEFAULT, which no value is.
_DEFAULTS = {field.name: field.default for field in msgspec.structs.fields(JobDescription)}
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A part of a file name that leads nowhere."""

# What other systems call the same thing, lowered and without punctuation.
_OTHER_NAMES = {
    "args": "arguments", "argument": "arguments", "env": "environment", "jobname": "name", "cpu": "cpu_time",
    "maxcputime": "cpu_time", "walltime": "wall_time", "maxwalltime": "wall_time", "time": "wall_time",
    "memory": "memory_mb", "mem": "memory_mb", "ram": "memory_mb", "maxram": "max_memory_mb", "maxmemory": "max_memory_mb", "minram": "memory_mb",
    "disk": "disk_mb", "cores": "processors", "cpus": "processors", "numberofprocessors": "processors",
    "minnumberofprocessors": "min_processors", "maxnumberofprocessors": "max_processors", "samstation": "stations",
    "stationname": "stations", "station": "stations", "gridmiddleware": "grid_middlewares", "site": "sites", "bannedsite": "banned_sites", "gridce": "grid_ces", "ce": "grid_ces", "platform": "platforms",
    "tag": "tags", "type": "job_type", "userpriority": "priority", "retries": "max_attempts", "output": "output_sandbox",
    "outputs": "output_sandbox", "input": "input_sandbox", "inputs": "input_sandbox", "cmd": "executable",
    "command": "executable", "program": "executable", "count": "array", "exitcodes": "success_exit_codes",
    "jobgroup": "job_group", "batchname": "job_group", "afterok": "after", "afterany": "after_any", "depends": "after",
    "dependency": "after", "dependencies": "after", "dependson": "after", "holdjid": "after_any",
}  # fmt: skip
_IDENTITY = {"owner", "ownergroup", "group", "vo", "user"}


def validate(description: JobDescription, place: str = "") -> list[Problem]:
    """Return everything that is wrong with the description: an empty list when it may be accepted.

    `place` is put before the place of each problem, as `jobs[3]`.
    """
    findings = [
        (f".{name}{sub}", message, remedy)
        for name, rule in RULES.items()
        if (value := getattr(description, name)) is not _DEFAULTS[name]
        for sub, message, remedy in rule(value)
    ]
    return problems(findings or across(description), place)


def check_fields(fields: Mapping[str, object]) -> list[Finding]:
    """Find what is wrong with single fields of a table as a parser gave it, unknown keys included."""
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


def across(description: JobDescription) -> list[Finding]:
    """Find what is wrong between fields, each of which is right by itself."""
    return [finding for rule in _ACROSS for finding in rule(description)]


def problems(findings: Iterable[Finding], place: str = "", line: int | None = None) -> list[Problem]:
    """Return the findings as problems of a place."""
    return [
        Problem(place=f"{place}{sub}".lstrip("."), message=message, remedy=remedy, line=line)
        for sub, message, remedy in findings
    ]


def remedy_for(unknown: str, known: Sequence[str] = tuple(RULES)) -> str:
    """Return what to do about an unknown key."""
    # A hostile key may be very long, and difflib is quadratic.
    plain = re.sub(r"[^a-z0-9]", "", unknown[:64].lower())
    if plain in _IDENTITY:
        return "leave it out: the token says whose job it is"
    same = [name for name in known if name.replace("_", "") == plain]
    other = [name for name in known if name == _OTHER_NAMES.get(plain)]
    near = difflib.get_close_matches(unknown[:64].lower(), known, n=1)
    return f'did you mean "{[*same, *other, *near][0]}"?' if same or other or near else "leave it out"


def _site_conflicts(description: JobDescription) -> Iterator[Finding]:
    banned = {site.casefold() for site in description.banned_sites} if description.sites else set()
    if banned and all(site.casefold() in banned for site in description.sites):
        yield (".banned_sites", "bans every site that sites names", "leave at least one of them")


def _memory_conflicts(description: JobDescription) -> Iterator[Finding]:
    least, most = description.memory_mb, description.max_memory_mb
    if least is not None and most is not None and least > most:
        yield (
            ".max_memory_mb",
            f"is {most:,} MiB, less than memory_mb, {least:,}",
            "ask for no more than it may use",
        )


def _processor_conflicts(description: JobDescription) -> Iterator[Finding]:
    least, most = description.min_processors, description.max_processors
    if least is None and most is not None:
        yield (
            ".max_processors",
            "is said without min_processors",
            "say both, or processors for an exact number",
        )
    if least is not None and description.processors != 1:
        yield (
            ".min_processors",
            "is said beside processors",
            "say one of them: processors is an exact number",
        )
    if least is not None and most is not None and least > most:
        yield (".max_processors", f"is {most:,}, less than min_processors, {least:,}", "say no less")


def _long_requirements(description: JobDescription) -> Iterator[Finding]:
    if description.stations and description.requirements:
        try:
            Expression.parse(required_text(description.requirements, description.stations))
        except Rejected as fault:
            yield (".stations", f"with requirements they are too much: {fault.message}", "name fewer")


def _told_attributes(description: JobDescription) -> Iterator[Finding]:
    seen = set[str]()
    for name in description.attributes:
        key = name.lower()
        if key in TOLD:
            remedy = f"say {TOLD[key]} instead" if TOLD[key] else "leave it out: the token says it"
            yield below(f"attributes.{name}", "is filled from the description", remedy)
        elif key in seen:
            yield below(f"attributes.{name}", "is given twice: case means nothing", "keep one of them")
        seen.add(key)
    size = len(str(description.attributes)) if description.attributes else 0
    if size > ATTRIBUTES_LIMIT:
        yield (".attributes", f"are {size:,} characters together, more than {ATTRIBUTES_LIMIT:,}", "say less")


def _unequal_lists(description: JobDescription) -> Iterator[Finding]:
    lengths = {name: len(values) for name, values in description.parameters.items()}
    first = next(iter(lengths), "")
    count, other = (description.array, "the array") if description.array else (lengths.get(first), first)
    for name, length in lengths.items():
        if length != count:
            what = f"{count:,} jobs" if description.array else f"{count:,}"
            yield below(
                f"parameters.{name}",
                f"has {length:,} values where {other} has {what}",
                "give one value a job",
            )


def _large_parameters(description: JobDescription) -> Iterator[Finding]:
    return large_parameters(size_of(description.parameters))


def large_parameters(size: int) -> Iterator[Finding]:
    """Find what is wrong with values of so many bytes, all together."""
    if size > PARAMETERS_LIMIT:
        yield (
            ".parameters",
            f"all values together are {size:,} bytes, more than {PARAMETERS_LIMIT:,}",
            "submit fewer",
        )


def _large_texts(description: JobDescription) -> Iterator[Finding]:
    texts = (
        *description.arguments,
        *description.environment,
        *description.environment.values(),
        *description.output_sandbox,
    )
    size = sum(map(byte_length, texts))
    if is_array(description):
        size += _growth(texts, description)
    if size > TEXT_LIMIT:
        yield (
            ".arguments",
            f"arguments, environment and output_sandbox together are {size:,} bytes, more than {TEXT_LIMIT:,}",
            "put them into a file of the input sandbox",
        )


def _templated_executable(description: JobDescription) -> Iterator[Finding]:
    if is_array(description) and "{" in description.executable:
        for name in _names(description.executable):
            if name == INDEX or name in description.parameters:
                yield (
                    ".executable",
                    f"is the same for all jobs of an array, so {{{name}}} is not replaced in it",
                    "use it in arguments or environment",
                )


def _long_name(description: JobDescription) -> Iterator[Finding]:
    if not is_array(description) or "{" not in description.name:
        return
    length = len(description.name) + _growth([description.name], description)
    if length > NAME_LIMIT:
        yield (
            ".name",
            f"may become {length:,} characters long, more than {NAME_LIMIT}",
            "use shorter values in it",
        )
    for name in sorted(set(_names(description.name)) & set(description.parameters)):
        for i, value in enumerate(description.parameters[name]):
            if not value.isprintable():
                yield (f".parameters.{name}[{i}]", "is used in name and has unprintable characters", "")


def _input_parameters(description: JobDescription) -> Iterator[Finding]:
    # Long lists travel apart: then an array stands here without them, and they are judged when they are joined.
    if description.array is not None and not description.parameters:
        return
    for n, name in enumerate(description.input_parameters):
        if name not in description.parameters:
            yield (
                f".input_parameters[{n}]",
                f"{rules.brief(name)} is no parameter",
                "give its list of values",
            )
        for i, value in enumerate(description.parameters.get(name, ())):
            if not ARCHIVE.fullmatch(value):
                yield (
                    f".parameters.{name}[{i}]",
                    f"{rules.brief(value)} is no archive: the digest and the size of one, as sha256:size",
                    "let `wms submit --input '{NAME}'` or upload() of the Python client make it",
                )


def _many_predecessors(description: JobDescription) -> Iterator[Finding]:
    found = predecessors_of(description)
    if found is None:
        return
    if len(found.all) > RANGES_LIMIT or count(found.all) > PREDECESSORS_LIMIT:
        most = f"{PREDECESSORS_LIMIT:,} jobs in {RANGES_LIMIT:,} ranges"
        yield (".after", f"with after_any and input_from names more than {most}", "name fewer")
    archives = len(description.input_sandbox) + count(found.outputs_of)
    if archives > INPUTS_LIMIT:
        yield (
            ".input_from",
            f"with input_sandbox makes {archives:,} archives, more than {INPUTS_LIMIT}",
            "name fewer",
        )


def _climbing_values(description: JobDescription) -> Iterator[Finding]:
    # A value must not complete a path that leads out: neither alone, nor with another beside it.
    used = {name for text in description.output_sandbox if description.parameters for name in _names(text)}
    for name in sorted(used & set(description.parameters)):
        for i, value in enumerate(description.parameters[name]):
            if not PLAIN.fullmatch(value) or len(value) > 255:
                yield (
                    f".parameters.{name}[{i}]",
                    f"{rules.brief(value)} is used in output_sandbox and is no plain part of a file name",
                    "begin with a letter or digit, then letters, digits and . _ -",
                )


_ACROSS: tuple[Callable[[JobDescription], Iterator[Finding]], ...] = (
    _site_conflicts,
    _memory_conflicts,
    _processor_conflicts,
    _told_attributes,
    _long_requirements,
    _unequal_lists,
    _large_parameters,
    _large_texts,
    large_offers,
    _templated_executable,
    _long_name,
    _input_parameters,
    _climbing_values,
    _many_predecessors,
)


def _growth(texts: Iterable[str], description: JobDescription) -> int:
    """Return by how many bytes placeholders may let the texts grow."""
    used = Counter(name for text in texts if "{" in text for name in _names(text))
    return sum(times * _width(name, description) for name, times in used.items())


def _width(name: str, description: JobDescription) -> int:
    if name == INDEX:
        return len(str(ARRAY_LIMIT))
    return byte_length(_longest(description.parameters.get(name, ())))


def _names(text: str) -> list[str]:
    return [found[2] for found in PLACEHOLDER.finditer(text) if found[2]]


def samples(values: Sequence[str]) -> tuple[str, ...]:
    """Return four of a list's values: a rule between fields that objects to any value objects to one of these."""
    longest = _longest(values)
    return (longest, *(next(filterfalse(fits, values), longest) for fits in _ASKED_OF_VALUES))


# By `_long_name`, `_climbing_values` and `_input_parameters`; what else is asked of values is their length.
_ASKED_OF_VALUES: tuple[Callable[[str], object], ...] = (str.isprintable, PLAIN.fullmatch, ARCHIVE.fullmatch)


def _longest(values: Sequence[str]) -> str:
    """Return the value of most bytes."""
    return max(values, key=len if "".join(values).isascii() else byte_length, default="")


def size_of(lists: Mapping[str, Sequence[str]]) -> int:
    """Return how many bytes the values of all lists are."""
    return sum(byte_length("".join(values)) for values in lists.values())


def byte_length(text: str) -> int:
    """Return how many bytes of UTF-8 a text is."""
    return len(text) if text.isascii() else len(text.encode())
