"""Errors: bounded, printable, and the same after pickling."""

import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from wms.errors import DETAILS_LIMIT, MESSAGE_LIMIT, Rejected, Unavailable, shown


def test_a_refusal_is_bounded_and_printable() -> None:
    refusal = Rejected("BAD", "x\x1b[31m" * 10_000, "line\nbreak", tuple("d\u202e" for _ in range(1000)))
    assert len(refusal.message) == MESSAGE_LIMIT
    assert refusal.remedy == r"line\nbreak"
    assert len(refusal.details) == DETAILS_LIMIT + 1
    assert refusal.details[0] == r"d\u202e"
    assert refusal.details[-1] == "and 900 more"
    assert all(line.isprintable() for line in str(refusal).splitlines())


def test_errors_survive_pickling() -> None:
    refusal = pickle.loads(pickle.dumps(Rejected("CODE", "message", "remedy", ("detail",))))
    assert (refusal.code, refusal.message, refusal.remedy, refusal.details) == (
        "CODE",
        "message",
        "remedy",
        ("detail",),
    )
    assert pickle.loads(pickle.dumps(Unavailable("no broker"))).message == "no broker"


@settings(deadline=None)
@given(st.text(), st.integers(1, 30))
def test_shown_is_printable_and_bounded(text: str, limit: int) -> None:
    assert shown(text, limit).isprintable()
    assert len(shown(text, limit)) <= limit
