"""Declarations of command options that set fields of a job description.

An option is declared once, as a field of a dataclass: `memory: Memory | None = sets("memory_mb")`. The argument parser takes the field's name
and type for the option, and its docstring for the help. `fields_of` reads the declarations to build the description.
"""

from dataclasses import Field, field, fields
from typing import Any

SETS = "sets"
MAKES = "makes"


def sets(name: str, *, unless: object = None) -> Any:
    """Declare an option whose value becomes the field `name` of a description. `unless` is its value if the option is not given."""
    return field(default=unless, metadata={SETS: name})


def makes(name: str) -> Any:
    """Declare an option whose words are converted to the field `name` of a description: files are uploaded, pairs are parsed."""
    return field(default=None, metadata={MAKES: name})


def fields_of(options: Any) -> dict[str, Any]:
    """Return the values of those options declared by `sets` that are given, by the description's fields."""
    given = ((each, getattr(options, each.name)) for each in fields(options) if SETS in each.metadata)
    return {each.metadata[SETS]: value for each, value in given if value != each.default}


def options_of(*classes: Any) -> dict[str, str]:
    """Return the names of the options declared in these classes by `sets` or `makes`, by the description's fields."""
    return {name: each.name for of in classes for each in fields(of) if (name := _field_of(each))}


def _field_of(option: "Field[Any]") -> str | None:
    return option.metadata.get(SETS) or option.metadata.get(MAKES)
