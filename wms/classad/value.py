"""Values of expressions: Python's, and the two special values of the language."""

import enum
from typing import TypeAlias


class Special(enum.Enum):
    """What an expression is when it has no value: an attribute is missing, or an operation makes no sense."""

    UNDEFINED = "undefined"
    ERROR = "error"

    def __bool__(self) -> bool:
        """Refuse: neither is true nor false, and whoever asks has forgotten it."""
        raise TypeError(f"{self.value} is neither true nor false: compare with `is True`")


UNDEFINED = Special.UNDEFINED
ERROR = Special.ERROR

Scalar: TypeAlias = bool | int | float | str | Special


class RecordText(str):
    """A record as its text, its attributes not evaluated: nobody asks what is in it but to show it."""

    __slots__ = ()


Value: TypeAlias = "bool | int | float | str | Special | tuple[Value, ...]"
