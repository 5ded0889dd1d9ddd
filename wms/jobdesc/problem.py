"""What is wrong with a description: each problem with its place and its remedy."""

from collections.abc import Sequence

import msgspec

from wms.errors import Rejected

PROBLEMS_LIMIT = 1_000
"""A reader stops looking after so many: nobody reads on."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing to mend before the description can be accepted."""

    place: str
    """Such as `jobs[3].arguments[2]`; empty for the document as a whole."""
    message: str
    remedy: str = ""
    line: int | None = None
    """Of the text it was read from, counted from 1, where that is known."""

    def __str__(self) -> str:
        line = "" if self.line is None else f"line {self.line}"
        where = f"{self.place} ({line})" if self.place and line else self.place or line
        said = f"{where}: {self.message}" if where else self.message
        return f"{said}; {self.remedy}" if self.remedy else said


class InvalidDescription(Rejected):
    """The description as a whole is refused; `problems` has everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(
            "DESCRIPTION_INVALID",
            f"the job description has {count} problem{'s' if count != 1 else ''}",
            details=tuple(str(problem) for problem in self.problems),
        )
        self.args = (self.problems,)
