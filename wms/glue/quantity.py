"""Numbers as information systems publish them: which ones mean «unknown» or «unlimited», and conversion of minutes to seconds.

Neither version of GLUE has a value for «unlimited», and only GLUE 2.0 has one for «unknown»; sites use many numbers for them. The
meaning of such a number depends on the kind of value. It is read as `UNKNOWN` or `UNLIMITED`, which cannot be compared with numbers.
So no code can take 444,444 for a number of waiting jobs, or 999,999,999 seconds for a limit.

* 999,999,999 and 999,999,999,999,999,999 (all nines, of 32 and 64 bits): not known. GLUE 2.0, OGF GFD-R-P.147, appendix A,
  which forbids negative place-holders; GLUE 1.x sites have them as the default of limits in their templates.
* 444,444 jobs, or megabytes: a template's number that no information provider has replaced. EGI's validator of GLUE 2.0
  calls it an error (its E022, I096).
* 2,146,660,842 seconds of waiting: likewise, for response times (E023 of the same; ARC writes it into its GLUE 1 tree).
* 2,147,483,647 and the other largest integers: no limit. ARC's Slurm back end publishes so what Slurm calls UNLIMITED.
* five nines or more as a limit on jobs: no limit; the GLUE ad of gLite (EGEE, 2005) has 99,999 running, 999,999 in all.
* -1: no limit in an attribute for a limit, not known elsewhere. 0 as a limit: not known, since no queue runs jobs for no time (the
  validator's W020, W022, W024 warn of it). Whether a queue accepts jobs is its status.
* a time of more than ten years: no limit, whoever multiplied or divided a place-holder by 60 on its way.

GLUE 1.x publishes limits of time in minutes (the LDAP schema's GlueCEPolicyMaxCPUTime, ...MaxWallClockTime, ...MaxObtainable...) and
response times in seconds; GLUE 2.0 publishes all in seconds. Here all are in seconds.
"""

from collections.abc import Iterable
from enum import Enum
from typing import Final, TypeAlias


class NotANumber(Enum):
    """A quantity without a number: unknown or unlimited."""

    UNKNOWN = "unknown"
    UNLIMITED = "unlimited"


Quantity: TypeAlias = int | NotANumber
UNKNOWN: Final = NotANumber.UNKNOWN
UNLIMITED: Final = NotANumber.UNLIMITED

NOT_KNOWN: Final = 999_999_999
"""The number published for an unknown value of a mandatory attribute."""
NO_LIMIT: Final = 2**31 - 1
"""The number published for «unlimited»: the largest that every form of either version can carry."""

MINUTE = 60
LONGEST_SECONDS = 10 * 366 * 86_400
_TEMPLATE = 444_444
_TEMPLATE_WAIT = 2_146_660_842
_LARGEST = frozenset({2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1})
_NINES_OF_PLACEHOLDERS = 9
_NINES_OF_LIMITS = 5


def count(value: int) -> Quantity:
    """Return what a published number of jobs, slots or CPUs means: the number, or `UNKNOWN`."""
    if value < 0 or value == _TEMPLATE or value in _LARGEST or _nines(value) >= _NINES_OF_PLACEHOLDERS:
        return UNKNOWN
    return value


def size(value: int) -> Quantity:
    """Return what a published size in any unit means: the number, or `UNKNOWN`, as for 0."""
    return count(value) or UNKNOWN


def wait(value: int) -> Quantity:
    """Return what a published waiting time in seconds means: the number, or `UNKNOWN`."""
    return UNKNOWN if value == _TEMPLATE_WAIT or value > LONGEST_SECONDS else count(value)


def limit(value: int) -> Quantity:
    """Return what a published limit on a number of jobs or slots means: the number, `UNKNOWN` or `UNLIMITED`."""
    if value in _LARGEST or value == -1:
        return UNLIMITED
    nines = _nines(value)
    if value <= 0 or nines >= _NINES_OF_PLACEHOLDERS:
        return UNKNOWN
    return UNLIMITED if nines >= _NINES_OF_LIMITS else value


def seconds(value: int) -> Quantity:
    """Return what a limit of time published in seconds means: seconds, `UNKNOWN` or `UNLIMITED`."""
    return _time(value, 1)


def minutes(value: int) -> Quantity:
    """Return what a limit of time published in minutes means: seconds, `UNKNOWN` or `UNLIMITED`."""
    return _time(value, MINUTE)


def in_minutes(quantity: Quantity) -> Quantity:
    """Return a limit in seconds as minutes, rounded down but at least 1, since 0 would mean no limit.

    UNKNOWN and UNLIMITED stay unchanged.
    """
    return quantity if isinstance(quantity, NotANumber) else max(1, quantity // MINUTE)


def known(quantity: Quantity) -> int | None:
    """Return the number of a quantity; None if it is unknown or unlimited."""
    return None if isinstance(quantity, NotANumber) else quantity


def least(quantities: Iterable[Quantity]) -> int | None:
    """Return the smallest number among quantities, which is the limit that applies first; None if none is a number."""
    return min((each for each in quantities if not isinstance(each, NotANumber)), default=None)


def told(quantity: Quantity) -> int | None:
    """Return the number to publish for a quantity: `NO_LIMIT` for an unlimited one. None if it is unknown, and so not published."""
    match quantity:
        case NotANumber.UNKNOWN:
            return None
        case NotANumber.UNLIMITED:
            return NO_LIMIT
        case _:
            return quantity


def _time(value: int, unit: int) -> Quantity:
    if value in _LARGEST or value == -1:
        return UNLIMITED
    if value <= 0 or _nines(value) >= _NINES_OF_PLACEHOLDERS:
        return UNKNOWN
    return UNLIMITED if value * unit > LONGEST_SECONDS else value * unit


def _nines(value: int) -> int:
    """Return the number of digits if all of them are 9, else 0."""
    text = str(value)
    return len(text) if set(text) == {"9"} else 0
