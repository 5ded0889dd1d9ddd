"""Reads the job description languages (JDL) of DIRAC and of EGEE (gLite): one syntax, and mostly the same attributes.

Sources: DIRAC's JDL reference, and EGEE's «Job Description Language Attributes Specification» (EGEE-JRA1-TEC-590869).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from wms.jobdesc.document import text_of
from wms.jobdesc.languages import common_values
from wms.jobdesc.languages.command_line import arguments
from wms.jobdesc.languages.draft import JobDraft, drafted
from wms.jobdesc.languages.jdl_parameters import is_of_parameters, lists_of, with_our_placeholders
from wms.jobdesc.languages.jdl_text import JdlAttribute, parse, split
from wms.jobdesc.languages.translation import Translation
from wms.jobdesc.loss_report import LossNotes, Origin

NAME: Final = "jdl"
SIZE_LIMIT = 512 * 1024
LOOKED_AT: Final = 65_536

Handler: TypeAlias = Callable[[JobDraft, JdlAttribute], None]

_COMMENTS = rb"(?:\s|#[^\n]*\n|//[^\n]*\n|/\*(?:(?!\*/).)*\*/)*"
_AD = re.compile(_COMMENTS + rb"\[\s*(?:[A-Za-z_][A-Za-z0-9_.]*\s*=[^=]|/\*|//|#)", re.DOTALL)
# Without brackets the first statement tells: it ends with a semicolon, or goes on in a list. TOML has neither.
_FIRST = re.compile(
    _COMMENTS + rb"[A-Za-z_][A-Za-z0-9_.]*\s*=[^=\n][^\n]*(?:;|\{)[ \t]*(?://[^\n]*|#[^\n]*)?\r?(?:\n|$)",
    re.DOTALL,
)


def looks_like(data: bytes) -> bool:
    """Return whether a document is a record in square brackets, or begins with a statement such as `Name = value;`."""
    head = data[:LOOKED_AT]
    return _AD.match(head) is not None or _FIRST.match(head) is not None


def read(data: bytes) -> Translation:
    """Return the translation of a JDL document: one job, a parametric job, or a collection.

    Raise InvalidDescription if the text is no JDL. Raise Rejected if the document is too large, not UTF-8, or makes too many
    jobs.
    """
    attributes = parse(text_of(data, SIZE_LIMIT))
    notes = LossNotes()
    nodes = next((each.records for each in attributes if each.key == "nodes" and each.records), None)
    if nodes is None:
        return drafted(NAME, [_draft(attributes, notes)])
    common = [each for each in attributes if each.key not in ("nodes", "type")]
    return drafted(NAME, [_draft(_over(common, node), notes) for node in nodes])


def _over(common: Sequence[JdlAttribute], node: Sequence[JdlAttribute]) -> list[JdlAttribute]:
    own = {each.key for each in node}
    return [*(each for each in common if each.key not in own), *node]


def _draft(attributes: Sequence[JdlAttribute], notes: LossNotes) -> JobDraft:
    draft = JobDraft(notes)
    parameters = [each for each in attributes if is_of_parameters(each)]
    others = [each for each in attributes if not is_of_parameters(each)]
    if parameters:
        lists_of(draft, parameters, others)
        others = [with_our_placeholders(each) for each in others]
    streams = {str(each.value) for each in others if each.key in ("stdoutput", "stderror")}
    for attribute in others:
        if attribute.key == "outputsandbox":
            _output_sandbox(draft, attribute, streams)
        else:
            _take(draft, attribute)
    return draft


def _take(draft: JobDraft, attribute: JdlAttribute) -> None:
    handler = _HANDLERS.get(attribute.key)
    if handler is not None:
        handler(draft, attribute)
    elif attribute.value is not None and attribute.key not in _NO_MEANING:
        sentence = "becomes an attribute of the job's ad"
        draft.put_item("attributes", attribute.name, attribute.value, _origin(attribute), sentence)
    else:
        draft.impossible(_origin(attribute), _NO_MEANING.get(attribute.key, "has no field, and is no value"))


def _origin(attribute: JdlAttribute) -> Origin:
    return Origin(attribute.name, attribute.line)


# --- handlers --------------------------------------------------------------------------------------


def _text_into(field: str) -> Handler:
    def handler(draft: JobDraft, attribute: JdlAttribute) -> None:
        if attribute.value is None:
            draft.impossible(_origin(attribute), "is no plain value")
        else:
            draft.put(field, str(attribute.value), _origin(attribute))

    return handler


def _number_into(field: str, plus: int = 0) -> Handler:
    def handler(draft: JobDraft, attribute: JdlAttribute) -> None:
        found = common_values.whole_number(str(attribute.value))
        if found is None:
            draft.impossible(_origin(attribute), "is no whole number")
        else:
            draft.put(field, found + plus, _origin(attribute))

    return handler


def _names_into(field: str) -> Handler:
    def handler(draft: JobDraft, attribute: JdlAttribute) -> None:
        found = attribute.texts
        if found is None:
            draft.impossible(_origin(attribute), "is no list of names")
            return
        names = [each for each in split(found) if each.lower() != "any"]
        draft.put(field, names, _origin(attribute))

    return handler


def _truth_into(field: str) -> Handler:
    def handler(draft: JobDraft, attribute: JdlAttribute) -> None:
        found = common_values.truth(str(attribute.value))
        if found is None:
            draft.impossible(_origin(attribute), "is neither true nor false")
        else:
            draft.put(field, found, _origin(attribute))

    return handler


def _arguments(draft: JobDraft, attribute: JdlAttribute) -> None:
    draft.put("arguments", arguments(str(attribute.value or "")), _origin(attribute))


def _environment(draft: JobDraft, attribute: JdlAttribute) -> None:
    pairs = [each.partition("=") for each in attribute.texts or []]
    if not all(sign for _, sign, _ in pairs):
        draft.impossible(_origin(attribute), 'takes texts such as "NAME=value"')
    else:
        draft.put("environment", {name.strip(): value for name, _, value in pairs}, _origin(attribute))


def _input_sandbox(draft: JobDraft, attribute: JdlAttribute) -> None:
    for source in split(attribute.texts or []):
        path = source.removeprefix("file://")
        draft.add_input(path.rstrip("/").rpartition("/")[2], path, _origin(attribute))


def _output_sandbox(draft: JobDraft, attribute: JdlAttribute, streams: set[str]) -> None:
    """Put the file names of the output sandbox into the draft, except those in `streams`, since standard streams are always kept."""
    names = [each.lstrip("/") for each in split(attribute.texts or []) if each not in streams]
    draft.put("output_sandbox", names, _origin(attribute))


def _input_data(draft: JobDraft, attribute: JdlAttribute) -> None:
    for source in split(attribute.texts or []):
        url = source if "://" in source else f"lfn:{_without_scheme(source)}"
        said = {"name": source.rstrip("/").rpartition("/")[2], "sources": [url]}
        draft.append("inputs", said, _origin(attribute), "is fetched before the job starts")


def _output_data(draft: JobDraft, attribute: JdlAttribute) -> None:
    for name in split(attribute.texts or []):
        plain = _without_scheme(name).rpartition("/")[2]
        if "://" in name:
            draft.append("outputs", {"name": plain, "targets": [name]}, _origin(attribute))
        else:
            sentence = "goes to the output sandbox, since there is no URL"
            draft.append("output_sandbox", plain, _origin(attribute), sentence)


def _without_scheme(name: str) -> str:
    return name[4:] if name[:4].lower() == "lfn:" else name


def _requirements(draft: JobDraft, attribute: JdlAttribute) -> None:
    if attribute.text == "true":
        draft.kept(_origin(attribute))
    else:
        draft.require(attribute.text, _origin(attribute))


def _rank(draft: JobDraft, attribute: JdlAttribute) -> None:
    draft.put("rank", attribute.text, _origin(attribute))


def _job_type(draft: JobDraft, attribute: JdlAttribute) -> None:
    """Put DIRAC's job type into the draft, or note what becomes of gLite's job type.

    DIRAC's type is a name for the kind of work; gLite's says how a job is run. A type that cannot run here is a problem.
    """
    name = str(attribute.value or "")
    match name.lower():
        case "normal" | "job" | "parametric" | "collection":
            draft.kept(_origin(attribute))
        case "interactive" | "checkpointable" | "partitionable" | "dag":
            draft.problem(_origin(attribute), f"there are no jobs of type {name}")
        case "mpich":
            draft.translated(_origin(attribute), "is a job of several processors of one node")
        case _:
            draft.put("job_type", name, _origin(attribute))


def _tags(draft: JobDraft, attribute: JdlAttribute) -> None:
    for each in split(attribute.texts or []):
        draft.append("tags", each, _origin(attribute))


def _nothing(sentence: str) -> Handler:
    return lambda draft, attribute: draft.translated(_origin(attribute), sentence)


_HANDLERS: Final[Mapping[str, Handler]] = {
    "executable": _text_into("executable"),
    "arguments": _arguments,
    "environment": _environment,
    "executionenvironment": _environment,
    "stdinput": _text_into("stdin"),
    "stdoutput": _text_into("stdout"),
    "stderror": _text_into("stderr"),
    "inputsandbox": _input_sandbox,
    "inputdata": _input_data,
    "outputdata": _output_data,
    "jobname": _text_into("name"),
    "jobgroup": _text_into("job_group"),
    "jobtype": _job_type,
    "type": _job_type,
    "priority": _number_into("priority"),
    "userpriority": _number_into("priority"),
    "cputime": _number_into("cpu_time"),
    "maxcputime": _number_into("cpu_time"),
    "site": _names_into("sites"),
    "sites": _names_into("sites"),
    "bannedsite": _names_into("banned_sites"),
    "bannedsites": _names_into("banned_sites"),
    "gridce": _names_into("grid_ces"),
    "gridmiddleware": _names_into("grid_middlewares"),
    "platform": _names_into("platforms"),
    "platforms": _names_into("platforms"),
    "submitpool": _names_into("submit_pools"),
    "pilottype": _names_into("pilot_types"),
    "pilottypes": _names_into("pilot_types"),
    "setup": _text_into("setup"),
    "diracsetup": _text_into("setup"),
    "tag": _tags,
    "tags": _tags,
    "numberofprocessors": _number_into("processors"),
    "cpunumber": _number_into("processors"),
    "minnumberofprocessors": _number_into("min_processors"),
    "maxnumberofprocessors": _number_into("max_processors"),
    "wholenode": _truth_into("whole_node"),
    "wholenodes": _truth_into("whole_node"),
    "minram": _number_into("memory_mb"),
    "maxram": _number_into("max_memory_mb"),
    "retrycount": _number_into("max_attempts", 1),
    "reschedulingcounter": _number_into("max_attempts", 1),
    "requirements": _requirements,
    "rank": _rank,
    **dict.fromkeys(
        ("owner", "ownergroup", "ownerdn", "virtualorganisation", "ownername"), _nothing("the token says whose job it is")
    ),
    **dict.fromkeys(("allowzippedisb", "loglevel", "shallowretrycount"), _nothing("is decided by the system")),
}  # fmt: skip
_NO_MEANING: Final = {
    "myproxyserver": "credentials are renewed by the system itself",
    "outputse": "outputs need a URL each",
    "outputpath": "outputs need a URL each",
    "expirytime": "use preferences.latest_start",
    "perusalfileenable": "use wms logs -f",
    "perusaltimeinterval": "use wms logs -f",
    "perusalfilestoenable": "use wms logs -f",
    "smpgranularity": "all processors of a job are of one node",
    "hostnumber": "all processors of a job are of one node",
    "dataaccessprotocol": "the agent chooses the replica",
    "fuzzyrank": "the element of the highest rank is taken",
    "hlrlocation": "usage is accounted by the system itself",
    "listenerport": "there are no interactive jobs",
    "dependencies": "use wms submit --after",
    "nodes": "is no list of jobs",
}
