"""How an option of a command says which field of a job description it sets.

An option is declared once, as a field of a dataclass: `memory: Memory | None = sets("memory_mb")`. Its name and its type make the
parser, its docstring is its help, and `fields_of` reads from it what goes into the description.
"""

from dataclasses import Field, field, fields
from typing import Any

SETS = "sets"
MAKES = "makes"


def sets(name: str, *, unless: object = None) -> Any:
    """Declare an option whose value is that of a field. An option that is not given has the value `unless`."""
    return field(default=unless, metadata={SETS: name})


def makes(name: str) -> Any:
    """Declare an option from whose words something else makes the value of a field: files are uploaded, pairs are parsed."""
    return field(default=None, metadata={MAKES: name})


def fields_of(options: Any) -> dict[str, Any]:
    """Return the values of the given options that set fields, by field."""
    given = ((each, getattr(options, each.name)) for each in fields(options) if SETS in each.metadata)
    return {each.metadata[SETS]: value for each, value in given if value != each.default}


def options_of(*classes: Any) -> dict[str, str]:
    """Return the names of the options that set or make fields, by field."""
    return {name: each.name for of in classes for each in fields(of) if (name := _field_of(each))}


def _field_of(option: "Field[Any]") -> str | None:
    return option.metadata.get(SETS) or option.metadata.get(MAKES)
