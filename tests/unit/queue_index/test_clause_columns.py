"""What a column says of all queues at once is what its clause says of each alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.matching.strategies import asks, offers, requirements, resources
from wms.matching.clauses import CLAUSES, Clause
from wms.matching.grouping import Requirements
from wms.queue_index.clause_columns import LEVELS, ClauseColumn, Ranked, column_of
from wms.queue_index.significant_attributes import SignificantAttributes
from wms.site import Resource

BY_NAME = {clause.name: clause for clause in CLAUSES}


def verdicts(column: ClauseColumn, resource: Resource, queues: int) -> list[bool]:
    bits = column.bits(resource, None)
    if bits is None:
        return [True] * queues
    return np.unpackbits(bits, count=queues, bitorder="little").astype(bool).tolist()


def alone(clause: Clause, queues: list[Requirements], resource: Resource) -> list[bool]:
    return [clause.holds(clause.part(each), resource) for each in queues]


@settings(max_examples=60, deadline=None)
@given(queues=st.lists(requirements(), min_size=1, max_size=20), there=st.lists(resources(), max_size=4))
def test_columns_judge_each_queue_as_their_clauses_do(
    queues: list[Requirements], there: list[Resource]
) -> None:
    columns = [column_of(clause, SignificantAttributes()) for clause in CLAUSES]
    half = len(queues) // 2
    for known in (queues[:half], queues):
        for column in columns:
            for each in known[column.numbers.length :]:
                column.append(each)
            for resource in there:
                assert verdicts(column, resource, len(known)) == alone(column.clause, known, resource)


def test_queues_with_one_part_share_it() -> None:
    column = ClauseColumn(BY_NAME["site"])
    for n in range(100):
        column.append(asks(owner=f"o{n}", sites=(f"S{n % 3}",)))
    assert len(column.parts) == 3
    assert column.numbers.values.tolist() == [n % 3 for n in range(100)]


def test_verdicts_outlive_the_moment_when_too_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wms.queue_index.clause_columns._KEPT_VERDICTS", 4)
    clause = BY_NAME["memory"]
    column, queues = ClauseColumn(clause), [asks(min_ram_mb=1_000 * n) for n in range(10)]
    for each in queues:
        column.append(each)
    for memory in [*range(0, 10_000, 500), 4_000]:
        resource = offers(memory_mb=memory)
        assert verdicts(column, resource, 10) == alone(clause, queues, resource)


# --- ranks ------------------------------------------------------------------------------------------


def slots_of(level: bytes, count: int) -> list[int]:
    return np.flatnonzero(
        np.unpackbits(np.frombuffer(level, np.uint8), count=count, bitorder="little")
    ).tolist()


def bits_of(slots: list[int], count: int) -> np.ndarray:
    mask = np.zeros(count, dtype=bool)
    mask[slots] = True
    return np.packbits(mask, bitorder="little")


@given(st.lists(st.sampled_from([-1.0, 0.0, 2.5, 7.0]), min_size=1, max_size=30), st.data())
def test_levels_are_the_queues_that_fit_by_rank_the_best_first(
    ranks: list[float], data: st.DataObject
) -> None:
    fit = sorted(data.draw(st.sets(st.integers(0, len(ranks) - 1))))
    ranked = Ranked()
    ranked.judge(np.array(ranks))
    found = [slots_of(level, len(ranks)) for level in ranked.among(bits_of(fit, len(ranks)))]
    by_rank = [
        [slot for slot in fit if ranks[slot] == rank]
        for rank in sorted({ranks[s] for s in fit}, reverse=True)
    ]
    assert found == (by_rank if len(by_rank) > 1 else []), "where all are liked alike there are no levels"


def test_ranks_below_the_last_level_are_one() -> None:
    count = LEVELS + 50
    ranked = Ranked()
    ranked.judge(np.arange(count, dtype=float))
    levels = [slots_of(level, count) for level in ranked.among(bits_of(list(range(count)), count))]
    assert len(levels) == LEVELS
    assert levels[:2] == [[count - 1], [count - 2]]
    assert levels[-1] == list(range(count - LEVELS + 1))
