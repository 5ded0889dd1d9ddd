"""Reads ARC's xRSL into descriptions.

Source: the reference manual of ARC 6 on xRSL. Times without a unit are minutes, memory and disk are megabytes.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, TypeAlias

from wms.jobdesc.document import text_of
from wms.jobdesc.languages import common_values
from wms.jobdesc.languages.draft import JobDraft, drafted
from wms.jobdesc.languages.translation import Translation
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
        name for each in request.relations if each.name == "executables" for name in _texts(each.values)
    }
    for relation in request.relations:
        if relation.name == "inputfiles":
            _input_files(draft, relation, executables)
        else:
            _take(draft, relation)
    _take_alternatives(draft, request.alternatives)
    return draft


def _take(draft: JobDraft, relation: Relation) -> None:
    handler = _HANDLERS.get(relation.name)
    if handler is None:
        draft.impossible(_origin(relation), _NO_MEANING.get(relation.name, "is not known"))
    elif relation.operator != "=" and relation.name not in _COMPARED:
        draft.impossible(_origin(relation), f"cannot be compared by {relation.operator}")
    else:
        handler(draft, relation)


def _take_alternatives(draft: JobDraft, alternatives: Sequence[Relation]) -> None:
    """Put alternatives, one of which must hold, into the draft as one requirement.

    Only software, hosts, queues and operating systems can be alternatives. If any other attribute is among them, all
    alternatives are noted as impossible.
    """
    terms = [_TERMS[each.name](each) for each in alternatives if each.name in _TERMS]
    if len(terms) < len(alternatives):
        for each in alternatives:
            draft.impossible(_origin(each), "stands among alternatives, which only requirements may")
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
        draft.add_input(name, source.split(";")[0] or name, _origin(relation), executable=name in executables)


def _output_files(draft: JobDraft, relation: Relation) -> None:
    for name, target in _pairs(relation):
        if target:
            draft.append("outputs", {"name": name, "targets": [target.split(";")[0]]}, _origin(relation))
        else:
            draft.append("output_sandbox", "**" if name == "/" else name.lstrip("/"), _origin(relation))


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


def _number_into(field: str, ours: Callable[[int], int] = int, sentence: str = "") -> Handler:
    def handler(draft: JobDraft, relation: Relation) -> None:
        found = common_values.whole_number(_first(relation))
        if found is None:
            draft.impossible(_origin(relation), f"{_first(relation)!r} is no whole number")
        else:
            draft.put(field, ours(found), _origin(relation), sentence)

    return handler


def _requirement(draft: JobDraft, relation: Relation) -> None:
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


def _join(draft: JobDraft, relation: Relation) -> None:
    if common_values.truth(_first(relation)):
        draft.impossible(_origin(relation), "standard output and error are kept apart")
    else:
        draft.kept(_origin(relation))


def _nothing(sentence: str) -> Handler:
    return lambda draft, relation: draft.translated(_origin(relation), sentence)


_TERMS: Final[Mapping[str, Callable[[Relation], str]]] = {
    "runtimeenvironment": lambda each: common_values.software(_first(each)),
    "opsys": lambda each: common_values.equal(
        "GlueHostOperatingSystemName", _first(each), negated=each.operator == "!="
    ),
    "architecture": lambda each: common_values.equal(
        "GlueHostArchitecturePlatformType", _first(each), negated=each.operator == "!="
    ),
    "cluster": lambda each: common_values.equal(
        "GlueCEInfoHostName", _first(each), negated=each.operator == "!="
    ),
    "queue": lambda each: common_values.equal("GlueCEName", _first(each), negated=each.operator == "!="),
}
_COMPARED: Final = frozenset(_TERMS) | {"memory", "disk", "cputime", "walltime"}
_HANDLERS: Final[Mapping[str, Handler]] = {
    "executable": _text_into("executable"),
    "arguments": _arguments,
    "environment": _environment,
    "outputfiles": _output_files,
    "cputime": _duration_into("cpu_time"),
    "walltime": _duration_into("wall_time"),
    "gridtime": _duration_into("cpu_time", f"becomes cpu_time, for a processor of {GRIDTIME_GHZ} GHz"),
    "memory": _size_into("memory_mb"),
    "disk": _size_into("disk_mb"),
    "stdin": _text_into("stdin"),
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
    "rslsubstitution": _nothing("its values stand where they were used"),
    "executables": _nothing("the files that are marked are executable"),
    "cache": _nothing("files are fetched for each job"),
    "ftpthreads": _nothing("the agent decides how many files it fetches at a time"),
}
_NO_MEANING: Final = {
    "notify": "nobody is written to; use wms wait",
    "gmlog": "there is no such directory in the job",
    "lifetime": "results are kept as long as the configuration says",
    "acl": "who may act on a job is decided by groups",
    "jobreport": "usage is accounted by the system itself",
    "replicacollection": "there is no such catalogue",
    "credentialserver": "credentials are renewed by the system itself",
    "dryrun": "use wms submit --dry-run",
    "countpernode": "all processors of a job are of one node",
    "nodeaccess": "outbound access cannot be asked for by name; use requirements",
    "middleware": "use grid_middlewares",
    "action": "only requests can be read",
}
