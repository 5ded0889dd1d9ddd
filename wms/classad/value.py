"""Values of ClassAd expressions: Python's values, and the two special values of the language."""

import enum
from typing import TypeAlias


class Special(enum.Enum):
    """A special value of an expression: undefined if an attribute is missing, error if an operation makes no sense."""

    UNDEFINED = "undefined"
    ERROR = "error"

    def __bool__(self) -> bool:
        """Raise TypeError, since neither value is true or false; the test must be `is True`."""
        raise TypeError(f"{self.value} is neither true nor false: compare with `is True`")


UNDEFINED = Special.UNDEFINED
ERROR = Special.ERROR

Scalar: TypeAlias = bool | int | float | str | Special


class RecordText(str):
    """The text of a record whose attributes are not evaluated; it is only displayed."""

    __slots__ = ()


Value: TypeAlias = "bool | int | float | str | Special | tuple[Value, ...]"
