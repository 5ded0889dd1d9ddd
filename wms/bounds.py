"""Bounds on every number, text, list and time that a message may contain: one annotated type for each kind of value.

A struct that is read from outside uses these types. So decoded values fit the columns of the database and are safe to compute with. msgspec checks
ranges and lengths while it decodes. What it cannot check is a *rule*: a function that returns the fault of a value as text, or an empty text. It is
stored in the `extra` of the annotation (`wms.messages.inspection`).
"""

import sys
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

INT4: Final = 2**31 - 1
"""The largest value of a column of type `integer`."""
ID_LIMIT: Final = 2**62
"""The largest `bigint` id. Sums of ids and ends of ranges still fit the column."""
EARLIEST_YEAR, LATEST_YEAR = 1970, 2999

RULE: Final = "rule"
"""The key, in the `extra` of an annotation, of a rule that is always checked."""
NAME_RULE: Final = "name_rule"
"""The key of a rule for names. It is checked only if the message contains a backslash, a DEL, or a non-ASCII character."""
TEXT_RULE: Final = "text_rule"
"""The key of a rule for other texts. It is checked only if the message may contain a NUL character."""


def printable(text: str) -> str:
    """Return the fault of a name; empty if it has none. Control characters are forbidden, since they could rewrite lines of a terminal or log."""
    return "" if text.isprintable() else "has a control or unprintable character"


def without_nul(text: str) -> str:
    """Return the fault of a text; empty if it has none. Only NUL is forbidden, which Postgres cannot store."""
    return "has a NUL character" if "\0" in text else ""


def in_order(ends: tuple[int, int]) -> str:
    """Return the fault of a range, given as its first and last value; empty if it has none. The first must not be above the last."""
    return f"is a reversed range: {ends[0]} is over {ends[1]}" if ends[0] > ends[1] else ""


def of_this_age(moment: datetime) -> str:
    """Return the fault of a time; empty if its year is 1970 to 2999. Near the ends of the calendar, a change of time zone would overflow."""
    if EARLIEST_YEAR <= moment.year <= LATEST_YEAR:
        return ""
    return f"is not between the years {EARLIEST_YEAR} and {LATEST_YEAR}"


ONE_LINE: Final = "one_line"
"""The key that marks a text which is cleaned as it comes in, so that it is one line without unsafe characters."""

_PRINTABLE: Final[dict[Any, Any]] = {NAME_RULE: printable}
_ANY_TEXT: Final[dict[Any, Any]] = {TEXT_RULE: without_nul}
_SENTENCE: Final[dict[Any, Any]] = {**_ANY_TEXT, ONE_LINE: True}

# --- names and texts ------------------------------------------------------------------------------

NAME_LENGTH: Final = 255
Name: TypeAlias = Annotated[str, Meta(max_length=NAME_LENGTH, extra=_PRINTABLE)]
"""The name of a site, an owner, a tag, ...; empty where there is none."""
GivenName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH, extra=_PRINTABLE)]
"""A name that must not be empty."""
Names: TypeAlias = Annotated[tuple[Name, ...], Meta(max_length=1_000)]
"""A set of names."""
NameSet: TypeAlias = Annotated[frozenset[Name], Meta(max_length=1_000)]
MessageId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200, extra=_PRINTABLE)]
"""The id of a command or query, chosen by its sender."""
PilotName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=100, extra=_PRINTABLE)]
"""The id of a pilot, or of a request or report, chosen by the pilot."""
AgreementName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=100, pattern="^[A-Za-z0-9][A-Za-z0-9_.-]*$", extra=_PRINTABLE)
]
"""The id of an agreement: characters that each batch system takes in a name."""
Client: TypeAlias = Annotated[str, Meta(max_length=200, extra=_PRINTABLE)]
"""The id of the user's tool that waits for an answer, as the tool chose it."""
Word: TypeAlias = Annotated[str, Meta(max_length=100, extra=_PRINTABLE)]
"""A code, a state or a kind, from a vocabulary that newer writers may extend."""
StoredName: TypeAlias = Annotated[str, Meta(max_length=4_096)]
"""A name as it was stored, perhaps before rules for names existed. Code that prints it must escape it."""
Digest: TypeAlias = Annotated[str, Meta(min_length=64, max_length=64, pattern="^[0-9a-f]{64}$")]
"""A SHA-256 in lower-case hexadecimal."""
Line: TypeAlias = Annotated[str, Meta(max_length=4_096, extra=_PRINTABLE)]
"""A path, an address or another text of one line."""
Lines: TypeAlias = Annotated[list[Line], Meta(max_length=10_000)]
LineTable: TypeAlias = Annotated[dict[Line, Line], Meta(max_length=1_000)]
Reason: TypeAlias = Annotated[str, Meta(max_length=500, extra=_SENTENCE)]
"""A sentence that gives a reason."""
GivenReason: TypeAlias = Annotated[str, Meta(min_length=1, max_length=500, extra=_SENTENCE)]
"""A sentence that gives a reason, where one must be given."""
Explanation: TypeAlias = Annotated[str, Meta(max_length=1_000, extra=_SENTENCE)]
"""The cause of an outcome, with the values that led to it."""
Text: TypeAlias = Annotated[str, Meta(max_length=4_096, extra=_ANY_TEXT)]
Texts: TypeAlias = Annotated[tuple[Text, ...], Meta(max_length=1_000)]
TextOfJob: TypeAlias = Annotated[str, Meta(max_length=32_768, extra=_ANY_TEXT)]
"""An argument, a variable's value or a parameter of a payload."""
EXPRESSION_LENGTH: Final = 65_536
Expression: TypeAlias = Annotated[str, Meta(max_length=EXPRESSION_LENGTH, extra=_ANY_TEXT)]
"""A ClassAd expression or ad, as text."""
LongText: TypeAlias = Annotated[str, Meta(max_length=262_144, extra=_ANY_TEXT)]
"""A long text, such as the output of a program or a large expression."""
LongTexts: TypeAlias = Annotated[tuple[LongText, ...], Meta(max_length=1_000)]

# --- numbers --------------------------------------------------------------------------------------

JobNumber: TypeAlias = Annotated[int, Meta(ge=0, le=ID_LIMIT)]
EpochNumber: TypeAlias = Annotated[int, Meta(ge=1, le=INT4)]
"""The number of times that a job was given away, of an attempt that there is or was."""
JobRange: TypeAlias = Annotated[tuple[JobNumber, JobNumber], Meta(extra={RULE: in_order})]
"""A range of job ids as (first, last), both included."""
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Total: TypeAlias = Annotated[int, Meta(ge=0, le=ID_LIMIT)]
"""A number of jobs, over any number of owners and any time."""
Sequence: TypeAlias = Annotated[int, Meta(ge=0, le=INT4)]
"""The number of a state change in its job's history."""
ExitCode: TypeAlias = Annotated[int, Meta(ge=-INT4, le=INT4)]
Signal: TypeAlias = Annotated[int, Meta(ge=0, le=255)]
Megabytes: TypeAlias = Annotated[int, Meta(ge=0, le=INT4)]
Bytes: TypeAlias = Annotated[int, Meta(ge=0, le=2**60)]
CpuTime: TypeAlias = Annotated[int, Meta(ge=0, le=10**12)]
"""CPU time in whole seconds."""
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=1e11)]
"""CPU or wall time in seconds, up to three thousand years."""
Load: TypeAlias = Annotated[float, Meta(ge=0, le=1e9)]
"""The load of a machine: the number of processes that run or wait to run."""
Priority: TypeAlias = Annotated[float, Meta(ge=0, le=1e6)]
ShareOfGroup: TypeAlias = Annotated[float, Meta(ge=0, le=1e9)]
Chance: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
_LARGEST: Final = sys.float_info.max
Measure: TypeAlias = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
"""A finite number: neither infinite nor NaN."""
Whole: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""A ClassAd integer: 64 bits, signed."""

# --- times and documents --------------------------------------------------------------------------

Moment: TypeAlias = Annotated[datetime, Meta(tz=True, extra={RULE: of_this_age})]
"""A time with its time zone. Times without one are refused, since they cannot be compared with others."""
Timestamp: TypeAlias = Annotated[float, Meta(ge=0, le=32_503_680_000)]
"""Seconds since 1970, to the year 3000."""
WholeTimestamp: TypeAlias = Annotated[int, Meta(ge=0, le=32_503_680_000)]
Document: TypeAlias = Annotated[dict[Name, Any], Meta(max_length=10_000)]
"""A JSON object that is passed on unchanged. Its size is bounded only by the size of its message."""
