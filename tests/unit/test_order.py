"""Tests are dealt so that each worker begins with those that wait."""

from collections import Counter

from tests.order import in_shares

FILES = {
    "services/job_agent/test_agent": 4,
    "services/test_b": 6,
    "contract/test_bus": 5,
    "db/test_c": 3,
    "unit/test_d": 50,
    "unit/test_e": 10,
}
TESTS = [f"tests/{file}.py::{n}" for file, count in FILES.items() for n in range(count)]


def file_of(test: str) -> str:
    return test.partition("::")[0]


def test_each_share_begins_with_what_waits_and_none_is_lost() -> None:
    ordered = in_shares(TESTS, 3, file_of, {"tests/contract/test_bus.py"})
    assert Counter(ordered) == Counter(TESTS)
    shares = [ordered[:26], ordered[26:52], ordered[52:]]
    assert [file_of(share[0]) for share in shares] == [
        "tests/contract/test_bus.py",
        "tests/services/job_agent/test_agent.py",
        "tests/services/test_b.py",
    ]
    for share in shares:
        computes = [file_of(test).startswith("tests/unit/") for test in share]
        assert computes == sorted(computes)
        assert computes[-1]


def test_more_that_waits_than_a_share_holds_is_dealt_all_the_same() -> None:
    waiting = [test for test in TESTS if "unit" not in test]
    assert Counter(in_shares(waiting, 7, file_of)) == Counter(waiting)
    assert in_shares([], 3, file_of) == []
