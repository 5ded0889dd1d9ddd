"""Reads the job description languages (JDL) of DIRAC and of EGEE (gLite): one syntax, and mostly the same attributes.

Sources: DIRAC's JDL reference, and EGEE's «Job Description Language Attributes Specification» (EGEE-JRA1-TEC-590869).
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from wms.classad.tree import ListOf
from wms.jobdesc.array import INDEX
from wms.jobdesc.document import text_of
from wms.jobdesc.languages import common_values
from wms.jobdesc.languages.command_line import arguments, needs_a_shell
from wms.jobdesc.languages.draft import JobDraft, drafted
from wms.jobdesc.languages.jdl_elements import IMPOSSIBLE, OMITTED, TOLD
from wms.jobdesc.languages.jdl_parameters import (
    is_ambiguous,
    is_of_parameters,
    is_template,
    lists_of,
    with_our_placeholders,
    with_values,
)
from wms.jobdesc.languages.jdl_text import JdlAttribute, parse
from wms.jobdesc.languages.submit_machine import SubmitMachine
from wms.jobdesc.languages.translation import Element, LocalFile, Translation, elements_of
from wms.jobdesc.loss_report import LossNotes, Origin

NAME: Final = "jdl"
SIZE_LIMIT = 512 * 1024
LOOKED_AT: Final = 65_536
COPIES_LIMIT: Final = 1_000
"""How many jobs of a document may have input files of their own."""

Handler: TypeAlias = Callable[[JobDraft, JdlAttribute], None]

_COMMENTS = rb"(?:\xef\xbb\xbf)?(?:\s|#[^\n]*\n|//[^\n]*\n|/\*(?:(?!\*/).)*\*/)*"
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


def read(data: bytes, machine: SubmitMachine | None = None) -> Translation:
    """Return the translation of a JDL document: one job, a parametric job, or a collection.

    Patterns of input files are replaced by the files of the `machine` that match; None: they stay as they are. Raise InvalidDescription if the text is no JDL. Raise Rejected if the document is too large, not UTF-8, or makes too many
    jobs.
    """
    attributes = parse(text_of(data, SIZE_LIMIT))
    notes = LossNotes()
    nodes = next((each.records for each in attributes if each.key == "nodes" and each.records), None)
    if nodes is None:
        return drafted(NAME, _matched(_drafts(attributes, notes), machine))
    common = [each for each in attributes if each.key not in ("nodes", "type")]
    return drafted(NAME, _matched((_draft(_over(common, node), notes) for node in nodes), machine))


def _matched(drafts: Iterable[JobDraft], machine: SubmitMachine | None) -> Iterator[JobDraft]:
    """Yield the drafts with the files that the patterns of their input sandboxes match."""
    for draft in drafts:
        if machine is not None:
            draft.local_files = [
                found for each in draft.local_files for found in _matches(draft, each, machine)
            ]
        yield draft


def _matches(draft: JobDraft, file: LocalFile, machine: SubmitMachine) -> Iterable[LocalFile]:
    if not any(mark in file.path for mark in "*?["):
        return [file]
    names = [each.name for each in machine.matching(file.path)]
    if not names:
        draft.problem(Origin("InputSandbox"), f"names {file.path}, which matches no file")
    return [LocalFile(posixpath.basename(name.rstrip("/")), name) for name in names]


def _over(common: Sequence[JdlAttribute], node: Sequence[JdlAttribute]) -> list[JdlAttribute]:
    own = {each.key for each in node}
    return [*(each for each in common if each.key not in own), *node]


def _drafts(attributes: Sequence[JdlAttribute], notes: LossNotes) -> Iterator[JobDraft]:
    """Yield one draft; or one for each job, if the jobs have files of their own, which no array can say."""
    whole = _draft(attributes, notes)
    lists = whole.get("parameters", {})
    if not lists or not any(each.key == "inputsandbox" and is_template(each) for each in attributes):
        yield whole
        return
    jobs = min(map(len, lists.values()))
    if jobs > COPIES_LIMIT:
        whole.problem(
            Origin("InputSandbox"), f"differs in {jobs:,} jobs, more than {COPIES_LIMIT:,}", "submit fewer"
        )
        yield whole
        return
    others = [each for each in attributes if not is_of_parameters(each)]
    for index in range(jobs):
        values = {name: column[index] for name, column in lists.items()} | {INDEX: str(index)}
        yield _draft([with_values(each, values) for each in others], LossNotes() if index else notes)


def _draft(attributes: Sequence[JdlAttribute], notes: LossNotes) -> JobDraft:
    draft = JobDraft(notes)
    parameters = [each for each in attributes if is_of_parameters(each)]
    others = [each for each in attributes if not is_of_parameters(each)]
    if parameters:
        lists_of(draft, parameters, others)
        for each in filter(is_ambiguous, others):
            draft.problem(
                _origin(each), "has braces directly around a placeholder", "set them apart by a blank"
            )
        others = [with_our_placeholders(each, draft.get("parameters", ())) for each in others]
    streams = {str(each.value) for each in others if each.key in ("stdoutput", "stderror")}
    for attribute in others:
        if attribute.key == "outputsandbox":
            _output_sandbox(draft, attribute, streams)
        else:
            _take(draft, attribute)
    return draft


def _take(draft: JobDraft, attribute: JdlAttribute) -> None:
    handler = HANDLERS.get(attribute.key)
    if handler is not None:
        handler(draft, attribute)
    elif attribute.key in OMITTED:
        draft.omitted(_origin(attribute), OMITTED[attribute.key])
    else:
        sentence = "is not known; what an expression of a site is to read, --attribute gives"
        draft.impossible(_origin(attribute), IMPOSSIBLE.get(attribute.key, sentence))


def _names(draft: JobDraft, attribute: JdlAttribute) -> list[str]:
    """Return the names of a list. If there is anything else in it, there are none, and a problem of the draft says so."""
    found = attribute.names
    if found is None:
        draft.problem(
            _origin(attribute), "is no list of names: expressions and records are not worked out here"
        )
    return found or []


def _text(draft: JobDraft, attribute: JdlAttribute) -> str | None:
    """Return the text, or the single word, of an attribute. If it is anything else, a problem of the draft says so."""
    value = attribute.value
    if value is not None:
        return str(value)
    if isinstance(attribute.node, ListOf) or attribute.names is None:
        draft.problem(_origin(attribute), "is no plain text: lists and expressions are not worked out here")
        return None
    return attribute.text


def _origin(attribute: JdlAttribute) -> Origin:
    return Origin(attribute.name, attribute.line)


# --- handlers --------------------------------------------------------------------------------------


def _text_into(field: str) -> Handler:
    def handler(draft: JobDraft, attribute: JdlAttribute) -> None:
        if (text := _text(draft, attribute)) is not None:
            draft.put(field, text, _origin(attribute))

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
        names = [each for each in _names(draft, attribute) if each.lower() != "any"]
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
    text = _text(draft, attribute)
    if text is not None and needs_a_shell(text):
        remedy = "put them into single quotes, or run /bin/sh with a script"
        draft.problem(_origin(attribute), "has characters that a shell on the node would work out", remedy)
    elif text is not None:
        draft.put("arguments", arguments(text), _origin(attribute))


def _environment(draft: JobDraft, attribute: JdlAttribute) -> None:
    pairs = [each.partition("=") for each in attribute.texts or [""]]
    if any("$" in value or "`" in value for _, _, value in pairs):
        draft.problem(_origin(attribute), "has characters that a shell on the node would work out")
    elif not all(sign for _, sign, _ in pairs):
        draft.problem(_origin(attribute), 'takes texts such as "NAME=value"')
    else:
        draft.put("environment", {name.strip(): value for name, _, value in pairs}, _origin(attribute))


def _input_sandbox(draft: JobDraft, attribute: JdlAttribute) -> None:
    for source in _names(draft, attribute):
        path = source.removeprefix("file://")
        draft.add_input(path.rstrip("/").rpartition("/")[2], path, _origin(attribute))


def _output_sandbox(draft: JobDraft, attribute: JdlAttribute, streams: set[str]) -> None:
    """Put the file names of the output sandbox into the draft, except those in `streams`, since standard streams are always kept."""
    names = [each.lstrip("/") for each in _names(draft, attribute) if each not in streams]
    draft.put("output_sandbox", names, _origin(attribute))


def _input_data(draft: JobDraft, attribute: JdlAttribute) -> None:
    for source in _names(draft, attribute):
        url = source if "://" in source else f"lfn:{_without_scheme(source)}"
        said = {"name": source.rstrip("/").rpartition("/")[2], "sources": [url]}
        draft.append("inputs", said, _origin(attribute), "is fetched before the job starts")


def _output_data(draft: JobDraft, attribute: JdlAttribute) -> None:
    for name in _names(draft, attribute):
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
    name = _text(draft, attribute) or ""
    match name.lower():
        case "normal" | "job" | "parametric" | "collection":
            draft.kept(_origin(attribute))
        case "interactive" | "checkpointable" | "partitionable" | "dag":
            draft.problem(_origin(attribute), f"there are no jobs of type {name}")
        case "mpich":
            draft.translated(_origin(attribute), "is a job of several processors of one node")
        case _:
            draft.put("job_type", name, _origin(attribute))


def _base_of_outputs(draft: JobDraft, attribute: JdlAttribute) -> None:
    if str(attribute.value).rstrip("/") == "gsiftp://localhost":
        draft.translated(_origin(attribute), "outputs wait for `wms output`, as they do at a CREAM element")
    else:
        draft.impossible(_origin(attribute), "use outputs with URLs, or wms output")


def _short_deadline(draft: JobDraft, attribute: JdlAttribute) -> None:
    """Require one of the queues that gLite's configuration has for jobs of short deadlines, or none of them."""
    wanted = common_values.truth(str(attribute.value))
    if wanted is None:
        draft.impossible(_origin(attribute), "is neither true nor false")
    else:
        sign = "=?=" if wanted else "=!="
        draft.require(f'(regexp(".*sdj$", other.GlueCEUniqueID) {sign} true)', _origin(attribute))


def _one_host(draft: JobDraft, attribute: JdlAttribute) -> None:
    if attribute.value == 1:
        draft.kept(_origin(attribute))
    else:
        draft.problem(_origin(attribute), "all processors of a job are of one node")


def _tags(draft: JobDraft, attribute: JdlAttribute) -> None:
    for each in _names(draft, attribute):
        draft.append("tags", each, _origin(attribute))


HANDLERS: Final[Mapping[str, Handler]] = {
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
    "nodenumber": _number_into("processors"),
    "hostnumber": _one_host,
    "outputsandboxbasedesturi": _base_of_outputs,
    "shortdeadlinejob": _short_deadline,
}  # fmt: skip
_SERIES: Final = ("ParameterStart", "ParameterStep", "ParameterFactor")
ELEMENTS: Final[Mapping[str, Element]] = elements_of(
    [*HANDLERS, "outputsandbox", "nodes", *_SERIES],
    TOLD,
    OMITTED,
    {"any other": "is not known", **IMPOSSIBLE},
)
"""Every attribute of the manuals, and what becomes of it."""
