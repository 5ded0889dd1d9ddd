"""Expressions are parsed, folded and evaluated in several threads at once: none sees another's."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import evaluate

THREADS, TIMES = 4, 400


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads that are changed after every few steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_what_is_folded_and_evaluated_in_one_thread_is_none_of_anothers(hasty: None) -> None:
    shared = Ad.of({"b": 7})

    def reckon(thread: int) -> list[tuple[object, object]]:
        found: list[tuple[object, object]] = []
        for n in range(TIMES):
            ad = Ad.of({"a": Expression.parse(f"{thread} * 1000 + {n}"), "t": f"of {thread}"})
            found.append(
                (ad.view(frozenset({"a"})), evaluate(Expression.parse(f"other.b + {thread}"), shared))
            )
        return found

    with ThreadPoolExecutor(THREADS) as pool:
        for thread, found in enumerate(pool.map(reckon, range(THREADS))):
            assert found == [((str(thread * 1_000 + n),), 7 + thread) for n in range(TIMES)]
