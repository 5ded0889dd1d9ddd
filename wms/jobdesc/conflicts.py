"""Finds conflicts between the fields of a description, where each field is valid by itself."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import filterfalse

from wms.classad.expression import Expression
from wms.errors import Rejected
from wms.jobdesc import rules
from wms.jobdesc.array import ARCHIVE, INDEX, PLACEHOLDER, is_array
from wms.jobdesc.brokering_conflicts import BROKERING, typed
from wms.jobdesc.description import MIB, JobDescription
from wms.jobdesc.offer_size import large_offers
from wms.jobdesc.predecessors import PREDECESSORS_LIMIT, RANGES_LIMIT, count, predecessors_of
from wms.jobdesc.rules import Finding, below
from wms.jobdesc.sam_stations import required_text

ARRAY_LIMIT = 1_000_000
NAME_LIMIT = 255
PRIORITY_LIMIT = 10
"""The highest priority of a job among the jobs of its owner. The lowest is 0."""
INPUTS_LIMIT = 100
"""How many archives may be unpacked for one job."""
TEXT_LIMIT = 128 * 1024
"""How many bytes one job's arguments, environment and output patterns may have together, with placeholders replaced."""
PARAMETERS_LIMIT = 64 * MIB
"""How many bytes the values of all parameters of an array may have together."""
ATTRIBUTES_LIMIT = 16_384
"""How many characters the names and values of a job's `attributes` may have together."""
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A pattern for texts that are safe in a path: no slash, and no dot at the beginning."""

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
"""The ad attributes, in lower case, that a description's `attributes` may not set, each with the field that sets it instead.

The field is empty for attributes about the user, which only the token may set.
"""


def across(description: JobDescription) -> list[Finding]:
    """Return the conflicts between fields of a description, each of which is valid by itself."""
    description = typed(description)
    return [finding for rule in _ACROSS for finding in rule(description)]


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


def _container_conflicts(description: JobDescription) -> Iterator[Finding]:
    if description.dispatch != "direct":
        return
    for name, is_asked in (
        (".container", description.container),
        (".network", description.network == "none"),
    ):
        if is_asked:
            yield (name, "is for jobs that pilots run, and this one is sent directly", "leave out dispatch")


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
            Expression.parse(required_text(description.requirements, description.stations, description.gpus))
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
    """Yield a finding if the values of all parameters have more bytes, `size`, than an array may have."""
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
        *_paths(description),
    )
    size = sum(map(byte_length, texts))
    if is_array(description):
        size += _growth(texts, description)
    if size > TEXT_LIMIT:
        yield (
            ".arguments",
            f"arguments, environment, output_sandbox and files together are {size:,} bytes, more than {TEXT_LIMIT:,}",
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
    used = {name for text in _paths(description) if description.parameters for name in _names(text)}
    for name in sorted(used & set(description.parameters)):
        for i, value in enumerate(description.parameters[name]):
            if not PLAIN.fullmatch(value) or len(value) > 255:
                yield (
                    f".parameters.{name}[{i}]",
                    f"{rules.brief(value)} is used in the path of a file and is no plain part of a file name",
                    "begin with a letter or digit, then letters, digits and . _ -",
                )


def _paths(description: JobDescription) -> tuple[str, ...]:
    """Return the texts of a description that become paths: output patterns, and names and addresses of files.

    A parameter's value that is used in one of them must be a plain part of a file name.
    """
    return (
        *description.output_sandbox,
        *(text for each in description.inputs for text in (each.name, *each.sources)),
        *(text for each in description.outputs for text in (each.name, *each.targets)),
        description.stdin,
        description.stdout,
        description.stderr,
    )


_ACROSS: tuple[Callable[[JobDescription], Iterator[Finding]], ...] = (
    _site_conflicts,
    _memory_conflicts,
    _container_conflicts,
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
    *BROKERING,
)


def _growth(texts: Iterable[str], description: JobDescription) -> int:
    """Return by how many bytes the texts may grow at most when their placeholders are replaced."""
    used = Counter(name for text in texts if "{" in text for name in _names(text))
    return sum(times * _width(name, description) for name, times in used.items())


def _width(name: str, description: JobDescription) -> int:
    if name == INDEX:
        return len(str(ARRAY_LIMIT))
    return byte_length(_longest(description.parameters.get(name, ())))


def _names(text: str) -> list[str]:
    return [found[2] for found in PLACEHOLDER.finditer(text) if found[2]]


def samples(values: Sequence[str]) -> tuple[str, ...]:
    """Return four of a parameter's values, by which all values can be checked for conflicts.

    They are the longest value, and for each check the first value that fails it. So a check that any value fails, one of the four fails.
    """
    longest = _longest(values)
    return (longest, *(next(filterfalse(fits, values), longest) for fits in _ASKED_OF_VALUES))


# By `_long_name`, `_climbing_values` and `_input_parameters`; what else is asked of values is their length.
_ASKED_OF_VALUES: tuple[Callable[[str], object], ...] = (str.isprintable, PLAIN.fullmatch, ARCHIVE.fullmatch)


def _longest(values: Sequence[str]) -> str:
    """Return the value with the most bytes; empty if there are no values."""
    return max(values, key=len if "".join(values).isascii() else byte_length, default="")


def size_of(lists: Mapping[str, Sequence[str]]) -> int:
    """Return the number of bytes of all values of all lists together, in UTF-8."""
    return sum(byte_length("".join(values)) for values in lists.values())


def byte_length(text: str) -> int:
    """Return the number of bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
