"""Bounds: how large each number, text, list and time may be that anyone sends, one annotated type for each noun of the trade.

A struct that is read from outside uses these types, so that what is decoded fits the columns of the database and cannot
hurt whoever reckons with it. msgspec checks ranges and lengths while it decodes. What it cannot check is a *rule*: a
function from a value to what is wrong with it, kept in the `extra` of the annotation (`wms.messages.inspection`).
"""

import sys
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

INT4: Final = 2**31 - 1
"""The largest value of a column of type `integer`."""
ID_LIMIT: Final = 2**62
"""Of ids that are `bigint`: sums and ends of ranges still fit."""
EARLIEST_YEAR, LATEST_YEAR = 1970, 2999

RULE: Final = "rule"
"""In the `extra` of an annotation: a rule for any value."""
NAME_RULE: Final = "name_rule"
"""Likewise one for names, which is looked at only if the message has a character that is not plain."""
TEXT_RULE: Final = "text_rule"
"""Likewise one for other texts, which is looked at only if the message may have a NUL."""


def printable(text: str) -> str:
    """Return what is wrong with a name: a control character could rewrite a terminal's or a log's line."""
    return "" if text.isprintable() else "has a control or unprintable character"


def without_nul(text: str) -> str:
    """Return what is wrong with a text of any characters: Postgres stores no NUL."""
    return "has a NUL character" if "\0" in text else ""


def in_order(ends: tuple[int, int]) -> str:
    """Return what is wrong with a range, both of whose ends are included."""
    return f"is a reversed range: {ends[0]} is over {ends[1]}" if ends[0] > ends[1] else ""


def of_this_age(moment: datetime) -> str:
    """Return what is wrong with a time: near the ends of the calendar, zones lead out of it."""
    if EARLIEST_YEAR <= moment.year <= LATEST_YEAR:
        return ""
    return f"is not between the years {EARLIEST_YEAR} and {LATEST_YEAR}"


_PRINTABLE: Final[dict[Any, Any]] = {NAME_RULE: printable}
_ANY_TEXT: Final[dict[Any, Any]] = {TEXT_RULE: without_nul}

# --- names and texts ------------------------------------------------------------------------------

NAME_LENGTH: Final = 255
Name: TypeAlias = Annotated[str, Meta(max_length=NAME_LENGTH, extra=_PRINTABLE)]
"""Of a site, an owner, a tag, ...; empty where there is none."""
GivenName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH, extra=_PRINTABLE)]
"""A name that must be there."""
Names: TypeAlias = Annotated[tuple[Name, ...], Meta(max_length=1_000)]
"""A set of names."""
NameSet: TypeAlias = Annotated[frozenset[Name], Meta(max_length=1_000)]
MessageId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200, extra=_PRINTABLE)]
"""Of a command or query, chosen by its sender."""
PilotName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=100, extra=_PRINTABLE)]
"""Of a pilot, or of a request or report that it chose a name for."""
Client: TypeAlias = Annotated[str, Meta(max_length=200, extra=_PRINTABLE)]
"""Which of a user's tools waits for an answer."""
Word: TypeAlias = Annotated[str, Meta(max_length=100, extra=_PRINTABLE)]
"""A code, a state, a kind: of a fixed vocabulary that a newer writer may have more of."""
StoredName: TypeAlias = Annotated[str, Meta(max_length=4_096)]
"""A name as it was stored, perhaps before names had rules; who prints it escapes it."""
Digest: TypeAlias = Annotated[str, Meta(min_length=64, max_length=64, pattern="^[0-9a-f]{64}$")]
"""A SHA-256 in lower-case hexadecimal."""
Line: TypeAlias = Annotated[str, Meta(max_length=4_096, extra=_PRINTABLE)]
"""A path, an address or another text of one line."""
Lines: TypeAlias = Annotated[list[Line], Meta(max_length=10_000)]
LineTable: TypeAlias = Annotated[dict[Line, Line], Meta(max_length=1_000)]
Reason: TypeAlias = Annotated[str, Meta(max_length=500, extra=_ANY_TEXT)]
"""A sentence that says why."""
Explanation: TypeAlias = Annotated[str, Meta(max_length=1_000, extra=_ANY_TEXT)]
"""How it came about, with the values that were seen."""
Text: TypeAlias = Annotated[str, Meta(max_length=4_096, extra=_ANY_TEXT)]
Texts: TypeAlias = Annotated[tuple[Text, ...], Meta(max_length=1_000)]
TextOfJob: TypeAlias = Annotated[str, Meta(max_length=32_768, extra=_ANY_TEXT)]
"""An argument, a variable's value or a parameter of a payload."""
EXPRESSION_LENGTH: Final = 65_536
Expression: TypeAlias = Annotated[str, Meta(max_length=EXPRESSION_LENGTH, extra=_ANY_TEXT)]
"""A ClassAd expression or ad, as text."""
LongText: TypeAlias = Annotated[str, Meta(max_length=262_144, extra=_ANY_TEXT)]
"""What a program printed, or an expression with all its terms."""
LongTexts: TypeAlias = Annotated[tuple[LongText, ...], Meta(max_length=1_000)]

# --- numbers --------------------------------------------------------------------------------------

JobNumber: TypeAlias = Annotated[int, Meta(ge=0, le=ID_LIMIT)]
JobRange: TypeAlias = Annotated[tuple[JobNumber, JobNumber], Meta(extra={RULE: in_order})]
"""Ids from the first to the second, both included."""
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Total: TypeAlias = Annotated[int, Meta(ge=0, le=ID_LIMIT)]
"""Of jobs, over all owners and times."""
Sequence: TypeAlias = Annotated[int, Meta(ge=0, le=INT4)]
"""The place of a move among those of its job."""
ExitCode: TypeAlias = Annotated[int, Meta(ge=-INT4, le=INT4)]
Signal: TypeAlias = Annotated[int, Meta(ge=0, le=255)]
Megabytes: TypeAlias = Annotated[int, Meta(ge=0, le=INT4)]
Bytes: TypeAlias = Annotated[int, Meta(ge=0, le=2**60)]
CpuTime: TypeAlias = Annotated[int, Meta(ge=0, le=10**12)]
"""Whole seconds of processors."""
Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=1e11)]
"""Of processors or clocks: three thousand years of one processor."""
Load: TypeAlias = Annotated[float, Meta(ge=0, le=1e9)]
"""Processes that run or wait to run."""
Priority: TypeAlias = Annotated[float, Meta(ge=0, le=1e6)]
ShareOfGroup: TypeAlias = Annotated[float, Meta(ge=0, le=1e9)]
Chance: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
_LARGEST: Final = sys.float_info.max
Measure: TypeAlias = Annotated[float, Meta(ge=-_LARGEST, le=_LARGEST)]
"""Any number that is one: neither infinite nor NaN."""
Whole: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""What a ClassAd can have for an integer."""

# --- times and documents --------------------------------------------------------------------------

Moment: TypeAlias = Annotated[datetime, Meta(tz=True, extra={RULE: of_this_age})]
"""A time with its zone: times without one cannot be compared with those that have."""
Timestamp: TypeAlias = Annotated[float, Meta(ge=0, le=32_503_680_000)]
"""Seconds since 1970, to the year 3000."""
WholeTimestamp: TypeAlias = Annotated[int, Meta(ge=0, le=32_503_680_000)]
Document: TypeAlias = Annotated[dict[Name, Any], Meta(max_length=10_000)]
"""JSON that is passed on as it is; bounded by the size of its message."""
