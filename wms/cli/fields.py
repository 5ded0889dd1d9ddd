"""Which option of the command line sets which field of a description: the one table for `submit`, `edit`, and what errors name."""

from collections.abc import Mapping
from typing import Any

OPTIONS: Mapping[str, str] = {
    "name": "name",
    "job_group": "group",
    "array": "array",
    "parameters": "parameter",
    "environment": "env",
    "cpu_time": "cpu_time",
    "wall_time": "wall_time",
    "memory_mb": "memory",
    "disk_mb": "disk",
    "max_memory_mb": "max_memory",
    "processors": "processors",
    "min_processors": "min_processors",
    "max_processors": "max_processors",
    "whole_node": "whole_node",
    "tags": "tag",
    "platforms": "platform",
    "sites": "site",
    "banned_sites": "banned_site",
    "grid_ces": "ce",
    "stations": "station",
    "grid_middlewares": "grid_middleware",
    "pilot_types": "pilot_type",
    "submit_pools": "submit_pool",
    "setup": "setup",
    "job_type": "job_type",
    "requirements": "requirements",
    "rank": "rank",
    "attributes": "attribute",
    "output_sandbox": "output",
    "stdout_limit": "stdout_limit",
    "stderr_limit": "stderr_limit",
    "after": "after",
    "after_any": "after_any",
    "input_from": "input_from",
    "priority": "priority",
    "max_attempts": "max_attempts",
    "success_exit_codes": "success_exit_code",
}
"""The parameter of `wms submit` that gives a field's value, by field. A new option needs a line here and its parameter there."""
ELSEWHERE: Mapping[str, str] = {"input_sandbox": "input"}
"""Options of which something else becomes a field: files are uploaded first."""
IN_EDITS: Mapping[str, str] = {"to_site": "site"}
"""Parameters of `wms edit` that have another name there, since --site selects jobs."""


def fields_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that the parameters of a command set; those that were not given are None or empty."""
    by_option = {IN_EDITS.get(name, name): value for name, value in given.items()}
    found = {field: by_option.get(option) for field, option in OPTIONS.items()}
    return {field: value for field, value in found.items() if value is not None and value not in ({}, [])}


def flag_of(field: str) -> str:
    """Return the option that sets a field, as it is written."""
    option = OPTIONS.get(field) or ELSEWHERE.get(field) or field
    return f"--{option.replace('_', '-')}"


def field_of(flag: str) -> str:
    """Return the field that an option sets, by its name without dashes before it."""
    name = flag.replace("-", "_")
    option = IN_EDITS.get(name, name)
    every = (*OPTIONS.items(), *ELSEWHERE.items())
    return next((field for field, each in every if each == option), name)
