"""How long counts are kept: the longer, the longer it took to count."""

from services.job_manager.queries.kept_counts import KEPT_FOR, KeptCounts


class Counted:
    """A count that takes `seconds` each time. `now` is a clock, `last` what was given, and `times` how often it was counted."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.now = 0.0
        self.times = 0
        self.last: list[int | None] = []

    async def count(self, last: int | None) -> int:
        self.now += self.seconds
        self.times += 1
        self.last.append(last)
        return self.times


async def test_counts_are_kept_for_a_multiple_of_the_time_that_they_took() -> None:
    counted = Counted(2.0)
    kept = KeptCounts[str, int](10, lambda: counted.now)
    assert await kept.read("a", counted.count) == 1
    assert await kept.read("b", counted.count) == 2, "each key has its own"
    counted.now = 2.0 + 2.0 * KEPT_FOR - 0.1
    assert await kept.read("a", counted.count) == 1
    counted.now += 0.1
    assert await kept.read("a", counted.count) == 3
    assert counted.last == [None, None, 1], "the last counts are given, though they are too old"


async def test_what_is_not_to_be_kept_is_counted_each_time() -> None:
    counted = Counted(2.0)
    kept = KeptCounts[str, int](10, lambda: counted.now, is_kept=lambda count: count >= 3)
    assert [await kept.read("a", counted.count) for _ in range(5)] == [1, 2, 3, 3, 3]
