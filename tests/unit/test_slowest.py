"""The page on the slowest tests: made of logs, and it names tests that are there."""

import re
from pathlib import Path

from tests.slowest import LISTED, PAGE, durations, page

ROOT = Path(__file__).parents[2]


def test_the_parts_of_a_test_count_together() -> None:
    log = "1.50s call     tests/a.py::test_a[x y]\n0.25s setup    tests/a.py::test_a[x y]\n9.00s call tests/b.py::test_b\n"
    found = durations([log])
    assert found == {"tests/a.py::test_a[x y]": 1.75, "tests/b.py::test_b": 9.0}
    assert page(found).endswith("| 9 | `tests/b.py::test_b` |\n| 2 | `tests/a.py::test_a[x y]` |\n")


def test_the_page_names_fifty_tests_that_are_there() -> None:
    named = re.findall(r"`(tests/[^:`]+)::(?:\w+::)?(\w+)", PAGE.read_text("utf-8"))
    assert len(named) == LISTED
    for path, test in named:
        assert f"def {test}(" in (ROOT / path).read_text("utf-8"), f"{path}::{test}"
