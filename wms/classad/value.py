"""Values of ClassAd expressions: Python's values, and the two special values of the language."""

import enum
from typing import TypeAlias


class Special(enum.Enum):
    """One of the two special values of an expression: undefined for a missing attribute, error for an operation that makes no sense."""

    UNDEFINED = "undefined"
    ERROR = "error"

    def __bool__(self) -> bool:
        """Raise TypeError, since neither value is true or false. Callers must test with `is True`."""
        raise TypeError(f"{self.value} is neither true nor false: compare with `is True`")


UNDEFINED = Special.UNDEFINED
ERROR = Special.ERROR

Scalar: TypeAlias = bool | int | float | str | Special


class RecordText(str):
    """The text of a record as a value. The record's attributes are not evaluated; the text is only displayed."""

    __slots__ = ()


Value: TypeAlias = "bool | int | float | str | Special | tuple[Value, ...]"
