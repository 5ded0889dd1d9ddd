"""The rules for values that are numbers with a fraction, times, URLs, or texts from a fixed set."""

import re
from collections.abc import Sequence
from datetime import datetime
from math import inf

from wms.bounds import of_this_age
from wms.jobdesc.rules import FINE, Finding, Rule, brief, line


def real(least: float, most: float, unit: str = "") -> Rule:
    """Return the rule that a value is a number from `least` to `most`, whole or not. `unit` is used in the texts of its findings."""
    of = f" {unit}" if unit else ""

    def rule(value: object) -> Sequence[Finding]:
        if type(value) not in (int, float) or not least <= float_of(value) <= most:
            return [("", f"must be a number from {least:,g} to {most:,g}{of}, not {brief(value)}", "")]
        return FINE

    return rule


def float_of(value: object) -> float:
    """Return a number as a float; infinity if the number is too large for one, or the value is no number."""
    try:
        return float(value) if isinstance(value, int | float) else inf
    except OverflowError:
        return inf


def one_of(*values: str) -> Rule:
    """Return the rule that a value is one of these texts."""
    names = " or ".join(f'"{value}"' for value in values)
    return lambda value: FINE if value in values else [("", f"must be {names}, not {brief(value)}", "")]


def moment(value: object) -> Sequence[Finding]:
    """Return a finding if the value is no time with a zone, or is in a year that the database cannot store."""
    remedy = "write 2026-08-11T10:00:00Z"
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return [("", f"must be a time, not {brief(value)}", remedy)]
    if not isinstance(value, datetime):
        return [("", f"must be a time, not {brief(value)}", remedy)]
    if value.tzinfo is None:
        return [("", "is a time without its zone", remedy)]
    return [("", wrong, "")] if (wrong := of_this_age(value)) else FINE


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,31}):[^\s]+")
_CREDENTIALS = re.compile(r"[^/]*//[^/?#]*@")


def url(schemes: Sequence[str]) -> Rule:
    """Return the rule that a value is a URL with one of these schemes, and without a user name or password."""
    printable = line(4_096, least=1)

    def rule(value: object) -> Sequence[Finding]:
        if (findings := printable(value)) or not isinstance(value, str):
            return findings
        found = _URL.fullmatch(value)
        if found is None or found[1].lower() not in schemes:
            return [("", f"{brief(value)} is no URL here", f"begin with one of {', '.join(schemes)}")]
        if _CREDENTIALS.match(value):
            return [("", "holds a user or a password", "leave it out: descriptions are no secrets")]
        return FINE

    return rule
