"""`python -m tests.slowest LOG...`: write docs/slowest-tests.md, the fifty tests that take longest, from what `pytest --durations=60` printed.

The times of a test's setup, call and teardown count together. What one machine took says only which tests to look at first.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[1] / "docs" / "slowest-tests.md"
LISTED: Final = 50
_LINE = re.compile(r"([0-9.]+)s (?:call|setup|teardown) +(tests/\S+::.+)")
_HEAD = """\
# The slowest tests

What `python -m tests.slowest` made of the logs of `.ci/run`'s steps, each with `--durations=60`: on 2 cores, some with three tests at a time.
Whoever makes the suites shorter begins here.

| seconds | test |
|---:|---|
"""


def durations(logs: Iterable[str]) -> dict[str, float]:
    """Return the seconds that each test took, by its id, from the texts of logs."""
    found = defaultdict[str, float](float)
    for each in logs:
        for seconds, test in _LINE.findall(each):
            found[test.strip()] += float(seconds)
    return found


def page(found: dict[str, float]) -> str:
    """Return the page on the slowest of the tests with these seconds."""
    slowest = sorted(found.items(), key=lambda each: -each[1])[:LISTED]
    return _HEAD + "".join(f"| {seconds:.0f} | `{test}` |\n" for test, seconds in slowest)


if __name__ == "__main__":
    PAGE.write_text(page(durations(Path(log).read_text("utf-8") for log in sys.argv[1:])), "utf-8")
