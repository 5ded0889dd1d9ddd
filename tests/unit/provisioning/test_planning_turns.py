"""Plans look at expressions that take long to parse in turn, and at all else always."""

from collections import Counter
from typing import Any

from tests.unit.matching.strategies import asks
from wms.ids import TaskQueueId
from wms.provisioning.planning_turns import CHARACTERS, PlanningTurns

LARGEST = 20_000


def queue(owner: str, size: int = 0) -> Any:
    return asks(owner=owner, requirements="x" * size)


def test_all_that_is_short_is_always_looked_at_and_some_of_what_is_long() -> None:
    waiting = {TaskQueueId(n): queue("mallory", LARGEST) for n in range(500)}
    plain = {TaskQueueId(1_000 + n): queue("alice") for n in range(100)}
    in_turn = PlanningTurns()
    for _ in range(10):
        chosen = in_turn.choose(waiting | plain)
        assert plain.keys() <= chosen
        assert sum(len(waiting[each].requirements) for each in chosen & waiting.keys()) <= CHARACTERS


def test_all_are_looked_at_while_they_are_few_and_one_that_is_too_long_for_any_plan() -> None:
    few = {TaskQueueId(n): queue("alice", 1_000) for n in range(CHARACTERS // 1_000)}
    assert PlanningTurns().choose(few) == few.keys()
    assert PlanningTurns().choose({TaskQueueId(1): queue("alice", 2 * CHARACTERS)}) == {1}


def test_owners_take_turns_and_so_do_their_queues() -> None:
    waiting = {TaskQueueId(n): queue("mallory", LARGEST) for n in range(500)}
    in_turn = PlanningTurns()
    for _ in range(30):
        in_turn.choose(waiting)
    waiting |= {TaskQueueId(1_000 + n): queue("bob", LARGEST) for n in range(3)}
    seen = Counter(each for _ in range(12) for each in in_turn.choose(waiting))
    owners = Counter[str]()
    for tq_id, times in seen.items():
        owners[waiting[tq_id].owner] += times
    assert owners == {"mallory": 6, "bob": 6}
    assert {seen[TaskQueueId(1_000 + n)] for n in range(3)} == {2}
    assert max(times for tq_id, times in seen.items() if tq_id < 1_000) == 1
