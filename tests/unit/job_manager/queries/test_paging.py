"""A page holds as many entries as fit into a message; all pages together hold each entry once."""

from services.job_manager.queries.paging import fitting, page, read_page


def test_what_fits_is_taken_and_the_first_in_any_case() -> None:
    assert fitting(["x" * 10, "y" * 10, "z" * 10], room=26) == ["x" * 10, "y" * 10]
    assert fitting(["x" * 100], room=10) == ["x" * 100]
    assert fitting([], room=10) == []


def test_pages_bring_each_entry_once() -> None:
    entries = list(range(25))
    found: list[int] = []
    after: int | None = 0
    while after is not None:
        part, after = page(entries, after, 10)
        found += part
    assert found == entries


async def test_entries_that_are_read_bit_by_bit_come_once_too() -> None:
    entries = [f"{n:03}" + "x" * (500 if n % 7 else 300_000) for n in range(200)]
    reads: list[tuple[int, int]] = []

    async def read(after: int, limit: int) -> list[str]:
        reads.append((after, limit))
        return entries[after : after + limit]

    found: list[str] = []
    after: int | None = 0
    while after is not None:
        part, after = await read_page(read, after, 1_000)
        assert sum(map(len, part)) <= 700_000
        found += part
    assert found == entries
    assert max(limit for _, limit in reads) <= 50


async def test_a_page_ends_at_its_limit() -> None:
    async def read(after: int, limit: int) -> list[int]:
        return list(range(after, min(after + limit, 130)))

    assert await read_page(read, 0, 70) == (tuple(range(70)), 70)
    assert await read_page(read, 70, 70) == (tuple(range(70, 130)), None)
