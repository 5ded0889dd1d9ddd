"""Changes to the description of a submitted job: its resource requests and files may change, but not its payload.

Fields are read and checked by the rules for submissions. A new value replaces the old one. But new attributes, and archives of
`input_sandbox`, are added to the old ones. An empty value clears the field.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

from wms.jobdesc.description import JobDescription, revised
from wms.jobdesc.from_json import table_of
from wms.jobdesc.problem import InvalidDescription
from wms.jobdesc.rules import Finding, below
from wms.jobdesc.validation import RULES, check_fields, problems, validate

Changes: TypeAlias = Mapping[str, Any]
"""The fields of a description that are to change, each with its new value."""

WHAT_IT_DOES: Final = frozenset(
    {
        "executable",
        "container",
        "network",
        "arguments",
        "environment",
        "name",
        "job_group",
        "setup",
        "array",
        "parameters",
        "input_parameters",
        "input_from",
        "inputs",
        "outputs",
        "stdin",
        "stdout",
        "stderr",
        "preferences",
        "index_servers",
        "dispatch",
        "coallocate",
    }
)
"""The fields that a submitted job keeps: those that say what the job runs, its name and group, and how it is placed."""
CHANGEABLE: Final = frozenset(RULES) - WHAT_IT_DOES
ADDED: Final = ("attributes", "input_sandbox")

_DEFAULTS = JobDescription(executable="-")
WORDS_LIMIT = 400


def read_changes(said: Mapping[str, Any]) -> Changes:
    """Return the checked changes from a parsed table of fields and values.

    Raise InvalidDescription, with every problem, if a value is malformed, a field cannot be changed, or the table is empty.
    """
    fields = table_of(msgspec.json.encode(said))
    findings = [*check_fields(fields), *_fixed(fields)]
    if not findings and not fields:
        findings = [("", "nothing is to change", "say what, such as memory_mb")]
    if findings:
        raise InvalidDescription(problems(findings))
    read = msgspec.convert({"executable": "-", **fields}, JobDescription)
    return {name: getattr(read, name) for name in fields}


def _fixed(fields: Mapping[str, object]) -> list[Finding]:
    remedy = "`wms submit --retry-of` submits new jobs like these"
    return [below(name, "cannot be changed", remedy) for name in sorted(WHAT_IT_DOES & fields.keys())]


def changed(description: JobDescription, changes: Changes) -> JobDescription:
    """Return the description with the changes applied.

    Raise InvalidDescription, with every problem, if the result is no valid description.
    """
    after = revised(description, {name: _value(description, name, value) for name, value in changes.items()})
    if found := validate(after):
        raise InvalidDescription(found)
    return after


def _value(description: JobDescription, name: str, value: Any) -> Any:
    if name not in ADDED or not value:
        return value
    before = getattr(description, name)
    if name == "attributes":
        return {**before, **value}
    return (*before, *(each for each in value if each not in before))


def default_of(name: str) -> Any:
    """Return the default value of the description's field `name`."""
    return getattr(_DEFAULTS, name)


def in_words(changes: Changes) -> str:
    """Return the changes as a line of text for a job's history, cut to 400 characters."""
    told = ", ".join(f"{name} {_short(value)}" for name, value in changes.items())
    return told if len(told) <= WORDS_LIMIT else f"{told[: WORDS_LIMIT - 3]}..."


def _short(value: Any) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], msgspec.Struct):
        return " ".join(f"+{each.sha256[:12]}" for each in value)
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return " ".join(f"{key}={each}" for key, each in value.items()) or "none"
    return "none" if value in (None, "") else str(value)
