"""Problems of a job description, each with its place and its remedy."""

from collections.abc import Sequence

import msgspec

from wms.errors import Rejected

PROBLEMS_LIMIT = 1_000
"""After how many problems a reader stops to look for more."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong with a job description: where, what, and how to correct it."""

    place: str
    """The place in the document, such as `jobs[3].arguments[2]`; empty for the document as a whole."""
    message: str
    remedy: str = ""
    line: int | None = None
    """The line of the source text, counted from 1; None if it is unknown."""

    def __str__(self) -> str:
        line = "" if self.line is None else f"line {self.line}"
        where = f"{self.place} ({line})" if self.place and line else self.place or line
        said = f"{where}: {self.message}" if where else self.message
        return f"{said}; {self.remedy}" if self.remedy else said


class InvalidDescription(Rejected):
    """The error for an invalid job description; `problems` has everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(
            "DESCRIPTION_INVALID",
            f"the job description has {count} problem{'s' if count != 1 else ''}",
            details=tuple(str(problem) for problem in self.problems),
        )
        self.args = (self.problems,)
