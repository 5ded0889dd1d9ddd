"""Reads ARC's xRSL into descriptions.

Source: the reference manual of ARC 6 on xRSL. Times without a unit are minutes, memory and disk are megabytes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias

import msgspec

from wms.jobdesc.document import text_of
from wms.jobdesc.languages import common_values
from wms.jobdesc.languages import files_of_arc as ours
from wms.jobdesc.languages.draft import JobDraft, drafted
from wms.jobdesc.languages.translation import Element, Translation, elements_of
from wms.jobdesc.languages.xrsl_text import JobRequest, Relation, Value, parse
from wms.jobdesc.loss_report import LossNotes, Origin

NAME: Final = "xrsl"
SIZE_LIMIT = 4 * 1024 * 1024
GRIDTIME_GHZ = 2.8
"""The clock rate in GHz of the processor by which `gridtime` is normalised: in ARC's manual a Pentium of 2.8 GHz."""

Handler: TypeAlias = Callable[[JobDraft, Relation], None]

_LOOKS = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s|\(\*(?:(?!\*\)).)*\*\))*[&|+]\s*\(", re.DOTALL)


def looks_like(data: bytes) -> bool:
    """Return whether a document begins as xRSL does: with `&`, `|` or `+` before an opening bracket."""
    return _LOOKS.match(data) is not None


def read(data: bytes) -> Translation:
    """Return the translation of an xRSL document.

    Raise InvalidDescription if the text is no xRSL. Raise Rejected if the document is too large, not UTF-8, or makes too
    many jobs.
    """
    notes = LossNotes()
    return drafted(NAME, [_draft(each, notes) for each in parse(text_of(data, SIZE_LIMIT))])


def _draft(request: JobRequest, notes: LossNotes) -> JobDraft:
    draft = JobDraft(notes)
    executables = {
        name.removeprefix("./")
        for each in request.relations
        if each.name in ("executables", "executable")
        for name in _texts(each.values)
    }
    logs = {_first(each) for each in request.relations if each.name == "gmlog"}
    for relation in request.relations:
        if relation.name == "inputfiles":
            _input_files(draft, relation, executables)
        elif relation.name == "outputfiles" and not logs.isdisjoint(name for name, _ in _pairs(relation)):
            values = tuple(each for each in relation.values if isinstance(each, str) or each[0] not in logs)
            _take(draft, msgspec.structs.replace(relation, values=values))
        else:
            _take(draft, relation)
    _take_alternatives(draft, request.alternatives)
    named = {name for each in request.relations if each.name == "inputfiles" for name, _ in _pairs(each)}
    ours.send(draft, "executable", named)
    ours.send(draft, "stdin", named)
    ours.times_slots(draft, "memory_mb")
    if any(each.name == "join" and common_values.truth(_first(each)) for each in request.relations):
        ours.join(draft)
    return draft


def _take(draft: JobDraft, relation: Relation) -> None:
    handler = HANDLERS.get(relation.name)
    if relation.name in OMITTED:
        draft.omitted(_origin(relation), OMITTED[relation.name])
    elif handler is None:
        draft.impossible(_origin(relation), IMPOSSIBLE.get(relation.name, "is not known"))
    elif relation.operator not in _OPERATORS.get(relation.name, ("=",)):
        draft.impossible(_origin(relation), f"cannot be compared by {relation.operator}")
    elif relation.name in _FLAT and not all(isinstance(each, str) for each in relation.values):
        draft.problem(_origin(relation), "has a bracket too many: its values stand one beside the other")
    elif relation.name in _PAIRED and not all(_is_pair(each) for each in relation.values):
        draft.problem(_origin(relation), 'takes pairs of texts, such as ("name" "value")')
    else:
        handler(draft, relation)


def _is_pair(value: Value) -> bool:
    return (
        not isinstance(value, str) and 1 <= len(value) <= 2 and all(isinstance(each, str) for each in value)
    )


def _take_alternatives(draft: JobDraft, alternatives: Sequence[Relation]) -> None:
    """Put alternatives, one of which must hold, into the draft as one requirement.

    Only software, hosts, queues and operating systems can be alternatives. If any other attribute is among them, all
    alternatives are noted as impossible.
    """
    terms = [_TERMS[each.name](each) for each in alternatives if each.name in _TERMS and _is_term(each)]
    if len(terms) < len(alternatives):
        for each in alternatives:
            draft.impossible(
                _origin(each), "stands among alternatives, which only requirements by = and != may"
            )
    elif terms:
        draft.require(common_values.either(terms), Origin("|", alternatives[0].line))


def _origin(relation: Relation) -> Origin:
    return Origin(relation.name, relation.line)


# --- values ----------------------------------------------------------------------------------------


def _first(relation: Relation) -> str:
    value = relation.values[0] if relation.values else ""
    return value if isinstance(value, str) else ""


def _texts(values: Sequence[Value]) -> list[str]:
    return [each for each in values if isinstance(each, str)]


def _pairs(relation: Relation) -> list[tuple[str, str]]:
    """Return the value of a relation that is a list of pairs, such as `("a" "b")("c" "d")`. A missing second text is empty."""
    lists = [_texts(each) for each in relation.values if not isinstance(each, str)]
    return [(each[0], each[1] if len(each) > 1 else "") for each in lists if each]


# --- handlers --------------------------------------------------------------------------------------


def _text_into(field: str) -> Handler:
    return lambda draft, relation: draft.put(field, _first(relation), _origin(relation))


def _arguments(draft: JobDraft, relation: Relation) -> None:
    draft.put("arguments", _texts(relation.values), _origin(relation))


def _environment(draft: JobDraft, relation: Relation) -> None:
    draft.put("environment", dict(_pairs(relation)), _origin(relation))


def _input_files(draft: JobDraft, relation: Relation, executables: set[str]) -> None:
    for name, source in _pairs(relation):
        path = ours.local_path(source.split(";")[0])
        draft.add_input(name, path or name, _origin(relation), executable=name in executables)


def _output_files(draft: JobDraft, relation: Relation) -> None:
    for name, target in _pairs(relation):
        kept = "**" if name == "/" else name.lstrip("/")
        if "://" in target and not target.startswith("file:"):
            draft.append("outputs", {"name": name, "targets": [target.split(";")[0]]}, _origin(relation))
        elif target:
            sentence = f"comes back as {kept} with `wms output`, and not as {target}"
            draft.append("output_sandbox", kept, _origin(relation), sentence)
        else:
            draft.append("output_sandbox", kept, _origin(relation))


def _duration_into(field: str, sentence: str = "") -> Handler:
    def handler(draft: JobDraft, relation: Relation) -> None:
        found = common_values.seconds(_first(relation), "minutes")
        if found is None:
            draft.impossible(_origin(relation), f"{_first(relation)!r} is no time")
        else:
            draft.put(field, found, _origin(relation), sentence)

    return handler


def _size_into(field: str) -> Handler:
    def handler(draft: JobDraft, relation: Relation) -> None:
        found = common_values.mebibytes(_first(relation))
        if found is None:
            draft.impossible(_origin(relation), f"{_first(relation)!r} is no size")
        else:
            draft.put(field, found, _origin(relation))

    return handler


def _number_into(field: str, made: Callable[[int], int] = int, sentence: str = "") -> Handler:
    def handler(draft: JobDraft, relation: Relation) -> None:
        found = common_values.whole_number(_first(relation))
        if found is None:
            draft.impossible(_origin(relation), f"{_first(relation)!r} is no whole number")
        else:
            draft.put(field, made(found), _origin(relation), sentence)

    return handler


def _is_term(relation: Relation) -> bool:
    return relation.operator in _OPERATORS[relation.name] and len(relation.values) == 1


def _requirement(draft: JobDraft, relation: Relation) -> None:
    if not _is_term(relation):
        draft.impossible(_origin(relation), "has options, such as an image: use container")
    elif relation.name == "opsys" and _first(relation).lower() == "linux" and relation.operator == "=":
        draft.kept(_origin(relation), "every node runs Linux")
    else:
        draft.require(_TERMS[relation.name](relation), _origin(relation))


def _queue(draft: JobDraft, relation: Relation) -> None:
    if relation.operator == "=":
        draft.put("grid_ces", _texts(relation.values), _origin(relation), "becomes grid_ces")
    else:
        _requirement(draft, relation)


def _exclusive(draft: JobDraft, relation: Relation) -> None:
    draft.put("whole_node", bool(common_values.truth(_first(relation))), _origin(relation))


def _start_time(draft: JobDraft, relation: Relation) -> None:
    text = "".join(each for each in _first(relation) if each.isdigit() and each.isascii())
    try:
        start = datetime.strptime(text.ljust(14, "0"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        draft.impossible(_origin(relation), f"{_first(relation)!r} is no time")
        return
    sentence = "becomes preferences.earliest_start, in UTC"
    draft.put_item("preferences", "earliest_start", start.isoformat(), _origin(relation), sentence)


def _benchmarks(draft: JobDraft, relation: Relation) -> None:
    found = [_benchmark(each) for each in relation.values]
    if None in found:
        draft.impossible(_origin(relation), "takes a name, a result and a time")
    else:
        draft.put_item("preferences", "benchmarks", found, _origin(relation))


def _benchmark(value: Value) -> dict[str, object] | None:
    said = _texts(value) if not isinstance(value, str) else []
    seconds = common_values.seconds(said[2], "minutes") if len(said) == 3 else None
    result = common_values.real(said[1]) if seconds is not None else None
    if seconds is None or result is None:
        return None
    return {"name": said[0], "result": result, "seconds": seconds}


def _executable(draft: JobDraft, relation: Relation) -> None:
    if _first(relation).startswith("$"):
        draft.problem(_origin(relation), "begins with a variable, which only a runtime environment would set")
    else:
        draft.put("executable", _first(relation), _origin(relation))


def _stdin(draft: JobDraft, relation: Relation) -> None:
    if _first(relation) == "/dev/null":
        draft.kept(_origin(relation))
    else:
        draft.put("stdin", _first(relation), _origin(relation))


def _join(draft: JobDraft, relation: Relation) -> None:
    if common_values.truth(_first(relation)):
        draft.translated(_origin(relation), "a shell sends the errors to the standard output")
    else:
        draft.kept(_origin(relation))


def _dry_run(draft: JobDraft, relation: Relation) -> None:
    if common_values.truth(_first(relation)) is False:
        draft.kept(_origin(relation))
    else:
        draft.problem(_origin(relation), "asks that nothing be run", "use wms submit --dry-run")


def _action(draft: JobDraft, relation: Relation) -> None:
    if _first(relation).lower() == "request":
        draft.kept(_origin(relation))
    else:
        draft.problem(_origin(relation), "is no request for a job")


_TERMS: Final[Mapping[str, Callable[[Relation], str]]] = {
    "runtimeenvironment": lambda each: common_values.software(_first(each)),
    "opsys": lambda each: common_values.equal(
        "GlueHostOperatingSystemName", _first(each), negated=each.operator == "!="
    ),
    "architecture": lambda each: common_values.equal(
        "GlueHostArchitecturePlatformType", ours.platform(_first(each)), negated=each.operator == "!="
    ),
    "cluster": lambda each: common_values.equal(
        "GlueCEInfoHostName", _first(each), negated=each.operator == "!="
    ),
    "queue": lambda each: common_values.equal("GlueCEName", _first(each), negated=each.operator == "!="),
}
_FLAT: Final = frozenset(
    {
        "arguments",
        "executable",
        "executables",
        "stdin",
        "stdout",
        "stderr",
        "jobname",
        "count",
        "memory",
        "disk",
    }
)
"""The attributes whose values are texts, and no lists."""
_PAIRED: Final = frozenset({"environment", "inputfiles", "outputfiles"})
_EQUAL: Final = ("=", "!=")
_OPERATORS: Final[Mapping[str, tuple[str, ...]]] = {
    "runtimeenvironment": ("=",),
    **dict.fromkeys(("opsys", "architecture", "cluster", "queue"), _EQUAL),
    **dict.fromkeys(("memory", "disk"), ("=", ">=")),
    **dict.fromkeys(("cputime", "walltime"), ("=", "<=")),
}
"""By what the attributes can be compared; all others by `=`."""
HANDLERS: Final[Mapping[str, Handler]] = {
    "executable": _executable,
    "arguments": _arguments,
    "environment": _environment,
    "outputfiles": _output_files,
    "cputime": _duration_into("cpu_time"),
    "walltime": _duration_into("wall_time"),
    "gridtime": _duration_into("cpu_time", f"becomes cpu_time, for a processor of {GRIDTIME_GHZ} GHz"),
    "memory": _size_into("memory_mb"),
    "disk": _size_into("disk_mb"),
    "stdin": _stdin,
    "stdout": _text_into("stdout"),
    "stderr": _text_into("stderr"),
    "jobname": _text_into("name"),
    "count": _number_into("processors"),
    "rerun": _number_into("max_attempts", lambda times: times + 1),
    "priority": _number_into(
        "priority",
        lambda of_100: min(10, max(0, of_100 // 10)),
        "becomes priority, 0 to 10 in place of 0 to 100",
    ),
    "exclusiveexecution": _exclusive,
    "starttime": _start_time,
    "benchmarks": _benchmarks,
    "join": _join,
    "queue": _queue,
    **dict.fromkeys(("runtimeenvironment", "opsys", "architecture", "cluster"), _requirement),
    "dryrun": _dry_run,
    "action": _action,
}
OMITTED: Final = {
    "rslsubstitution": "its values stand where they were used",
    "executables": "the files that are marked are executable",
    "cache": "files are fetched for each job",
    "ftpthreads": "the agent decides how many files it fetches at a time",
    "notify": "nobody is written to; use wms wait",
    "gmlog": "wms logs tells what it would hold",
    "lifetime": "results are kept as long as the configuration says",
    "acl": "who may act on a job is decided by groups",
    "jobreport": "usage is accounted by the system itself",
    "credentialserver": "credentials are renewed by the system itself",
    "countpernode": "all processors of a job are of one node",
}
"""The attributes that are left out, since the job is the same without them; each with the reason."""
IMPOSSIBLE: Final = {
    "replicacollection": "there is no such catalogue",
    "nodeaccess": "outbound access cannot be asked for by name; use requirements",
    "middleware": "use grid_middlewares",
}
"""The attributes without which the job may be another one."""
TOLD: Final[Mapping[str, str]] = {
    "executable": "a relative path is sent along, as ARC does; one that begins with a variable is refused",
    "stdin": "a relative path is sent along",
    "inputFiles": "without a source, or with one that is a path or `file://`, the file goes along; others are fetched by URL",
    "outputFiles": "without a target, or with one that is a path or `file://`, the file comes back; others are sent to their URL",
    "memory": "becomes `memory_mb`, times `count`: ARC's is of each slot",
    "cpuTime": "becomes `cpu_time`, in minutes without a unit",
    "gridTime": f"becomes `cpu_time`, for a processor of {GRIDTIME_GHZ} GHz",
    "count": "becomes `processors`, all of one node",
    "join": "a shell sends the errors to the standard output",
    "runTimeEnvironment": "becomes a requirement; comparisons of versions, and options such as images, are refused",
    "opsys": "`linux` is any node; others become a requirement; comparisons of versions are refused",
    "architecture": "becomes a requirement",
    "cluster": "becomes a requirement",
    "queue": "becomes `grid_ces`",
    "priority": "becomes `priority`, 0 to 10 in place of 0 to 100",
    "rerun": "becomes `max_attempts`, one more",
    "startTime": "becomes `preferences.earliest_start`, in UTC",
    "dryRun": "`yes` is refused",
    "action": "only `request`",
}
"""What becomes of attributes that are not kept in the same words."""
ELEMENTS: Final[Mapping[str, Element]] = elements_of([*HANDLERS, "inputfiles"], TOLD, OMITTED, IMPOSSIBLE)
"""Every attribute of the manual, and what becomes of it."""
