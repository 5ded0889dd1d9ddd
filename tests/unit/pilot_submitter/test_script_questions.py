"""Questions for a mapping script: owners take turns, and few are remembered."""

from services.pilot_submitter.script_questions import ScriptQuestions


def test_owners_of_questions_take_turns_each_in_its_own_order() -> None:
    wanted = ScriptQuestions()
    for owner, question in [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1"), ("b", "b2")]:
        wanted.add(("vo", owner), question)
        wanted.add(("vo", owner), question)
    assert len(wanted) == 6
    assert [wanted.next() for _ in range(7)] == ["a1", "b1", "c1", "a2", "b2", "a3", None]
    assert len(wanted) == 0


def test_where_the_room_is_full_who_has_most_gives_up_the_newest() -> None:
    wanted = ScriptQuestions(limit=6)
    for owner, count in [("a", 9), ("b", 2), ("c", 9)]:
        for number in range(count):
            wanted.add(("vo", owner), f"{owner}{number}")
    assert len(wanted) == 6
    assert [wanted.next() for _ in range(6)] == ["a0", "b0", "c0", "a1", "b1", "c1"]
    for owner in "abcdefgh":
        wanted.add(("vo", owner), owner)
    assert len(wanted) == 6, "as many owners as there is room for"
    wanted.answered("a")
    wanted.add(("vo", "h"), "h")
    assert [wanted.next() for _ in range(7)] == [*"bcdefh", None]
