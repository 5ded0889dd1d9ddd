"""Backoff, errors and slugs: small, pure, and used everywhere."""

import pickle
import random
import re
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wms.backoff import delays
from wms.errors import DETAILS_LIMIT, MESSAGE_LIMIT, Rejected, Unavailable, shown
from wms.ids import SLUG_LIMIT, slug


@settings(deadline=None)
@given(
    base=st.floats(0.001, 10),
    cap=st.floats(10, 1000),
    factor=st.floats(1, 10),
    seed=st.integers(0, 2**32),
)
def test_delays_lie_between_half_the_ceiling_and_the_ceiling(
    base: float, cap: float, factor: float, seed: int
) -> None:
    ceiling = base
    for delay in islice(delays(base, cap, factor, random.Random(seed).random), 40):
        assert ceiling / 2 <= delay <= ceiling
        ceiling = min(cap, ceiling * factor)


def test_a_backoff_that_could_spin_is_refused() -> None:
    for base, cap, factor in [(0, 1, 2), (2, 1, 2), (1, 2, 0.5), (-1, 1, 1)]:
        with pytest.raises(ValueError, match="backoff"):
            delays(base, cap, factor, lambda: 0.0)


def test_many_steps_do_not_overflow() -> None:
    assert max(islice(delays(1, 60, 10, lambda: 0.0), 5000)) == 60


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


@pytest.mark.parametrize("name", ["alice", "a", "lcg-cern-ch", "site1"])
def test_plain_names_stay(name: str) -> None:
    assert slug(name) == name


def test_the_slug_of_one_name_is_not_another_name_s() -> None:
    first = slug("LCG.CERN.ch")
    assert first.startswith("lcg-cern-ch-")
    assert slug(first) != first
    assert len({slug(name) for name in ("CERN", "cern", "cern.", ".cern", "cern-", first, "ce rn")}) == 7


@settings(deadline=None)
@given(st.text(), st.text())
def test_slugs_fit_a_topic_and_never_collide(one: str, other: str) -> None:
    for name in (one, other):
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", slug(name))
        assert len(slug(name)) <= SLUG_LIMIT
    assert (slug(one) == slug(other)) == (one == other)


@settings(deadline=None)
@given(st.from_regex(r"[A-Za-z.]{1,3}", fullmatch=True), st.from_regex(r"[A-Za-z.]{1,3}", fullmatch=True))
def test_short_slugs_never_collide(one: str, other: str) -> None:
    assert (slug(one) == slug(other)) == (one == other)
