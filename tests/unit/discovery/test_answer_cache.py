"""What is remembered of servers: answers, failures, and no more than may be."""

from tests.unit.discovery.grid import element
from wms.discovery.answer_cache import AnswerCache, CacheLifetimes
from wms.discovery.server_answers import ServerAnswer


def test_answers_are_fresh_then_stand_in_then_are_forgotten() -> None:
    memory = AnswerCache(CacheLifetimes(), lambda: 0.0)
    memory.learned("x", ServerAnswer(), 100.0)
    states = [memory.recall("x", 100.0 + after).state for after in (0, 29.9, 30, 599.9, 600)]
    assert states == ["fresh", "fresh", "stale", "stale", "unknown"]
    assert memory.recall("x", 112.0).age_seconds == 12.0
    assert memory.recall("y", 100.0).state == "unknown"


def test_who_fails_is_left_alone_twice_as_long_each_time_and_forgiven_at_once() -> None:
    memory = AnswerCache(CacheLifetimes(), lambda: 0.0)
    now, rests = 0.0, []
    for _ in range(7):
        memory.failed("x", "404", now)
        rests.append(next(s for s in range(2_000) if memory.recall("x", now + s).state != "resting"))
        now += rests[-1]
    assert rests == [30, 60, 120, 240, 480, 900, 900]
    memory.learned("x", ServerAnswer(), now)
    assert memory.recall("x", now).state == "fresh"
    memory.failed("x", "404", now)
    known = memory.recall("x", now + 29)
    assert (known.state, known.told, known.why) == ("resting", None, "404"), (
        "what it told is not believed any longer"
    )


def test_not_more_servers_are_remembered_than_may_be() -> None:
    memory = AnswerCache(CacheLifetimes(servers=2), lambda: 0.0)
    for key in ("a", "b"):
        memory.learned(key, ServerAnswer(), 0.0)
    memory.recall("a", 1.0)
    memory.failed("c", "404", 1.0)
    assert [memory.recall(key, 1.0).state for key in ("a", "b", "c")] == ["fresh", "unknown", "resting"]


def test_not_more_elements_are_remembered_than_may_be() -> None:
    memory = AnswerCache(CacheLifetimes(elements=3), lambda: 0.0)
    for key in ("a", "a", "b", "b"):
        memory.learned(key, ServerAnswer(elements=(element(key),)), 0.0)
    memory.learned("c", ServerAnswer(elements=(element("c"), element("d"))), 0.0)
    assert [memory.recall(key, 0.0).state for key in ("a", "b", "c")] == ["unknown", "fresh", "fresh"]
