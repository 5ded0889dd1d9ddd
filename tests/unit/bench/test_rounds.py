"""Systems that are measured beside each other work in turn, and a ratio is that of neighbours."""

from bench.rounds import alternate, ratio


class SlowMessageNotes:
    """A system that notes when it works, and is as fast as its turn says."""

    def __init__(self, name, notes, rates):
        self.name, self.notes, self.rates = name, notes, iter(rates)

    async def warm(self, kind):
        self.notes.append(f"{self.name} warm for {kind}")

    async def round(self, kind):
        self.notes.append(f"{self.name} {kind}")
        return next(self.rates)


async def test_each_works_in_its_turn():
    notes: list[str] = []
    sides = [SlowMessageNotes("ours", notes, [10.0, 20.0]), SlowMessageNotes("theirs", notes, [5.0, 4.0])]
    assert await alternate("matching", sides, 2) == [[10.0, 20.0], [5.0, 4.0]]
    assert notes == [
        "ours warm for matching",
        "theirs warm for matching",
        *["ours matching", "theirs matching"] * 2,
    ]


def test_a_ratio_is_that_of_neighbours():
    assert ratio([10.0, 20.0, 30.0], [5.0, 4.0, 10.0]) == {
        "median": 3.0,
        "range": [2.0, 5.0],
        "pairs": [2.0, 5.0, 3.0],
    }
