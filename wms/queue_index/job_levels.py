"""The user-priority level of each waiting job, by the job's id; it takes four bytes a job where ids are dense.

A level is the waiting jobs of one queue with one user priority. Ids are looked up in pages of 64. A page has a row of numbers in
one array. When half of the jobs have gone, the rows of empty pages are freed for use by other pages. Blocks of consecutive ids
are kept separately, by their first and last id.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wms.ids import JobId
from wms.queue_index.waiting_jobs import IdRange

_BITS = 6
_PAGE = 1 << _BITS
_INSIDE = _PAGE - 1
_FIRST = attrgetter("first")

NOWHERE = 0
"""The number that stands for "in no level"; no level has it."""


class JobLevels:
    """The number of the level of each waiting job. Jobs are stored one by one, or as blocks of consecutive ids in one level."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._free: list[int] = []
        self._length = 0
        self._low = 0
        """The number of single jobs below which the rows of empty pages are freed."""
        self._hold(np.zeros(_PAGE * 64, dtype=np.int32))
        self._singles = 0
        self._in_blocks = 0
        self._blocks: list[IdRange] = []

    def __len__(self) -> int:
        return self._singles + self._in_blocks

    def _hold(self, cells: NDArray[np.int32]) -> None:
        self._array = cells
        self._cells: Any = cells.data

    # --- jobs one by one --------------------------------------------------------------------------

    def get(self, job: JobId) -> int:
        """Return the level number of a job that is in no block; `NOWHERE` if it is in a block or not stored."""
        row = self._rows.get(job >> _BITS)
        return NOWHERE if row is None else int(self._cells[row << _BITS | job & _INSIDE])

    def put(self, job: JobId, level: int) -> None:
        """Store the number of the user-priority level of a job that is not stored yet."""
        page = job >> _BITS
        row = self._rows.get(page)
        if row is None:
            row = self._new_row(page)
        self._cells[row << _BITS | job & _INSIDE] = level
        self._singles += 1

    def pop(self, job: JobId) -> int:
        """Remove a job that is in no block; return its level number, or `NOWHERE` if it is in a block or not stored."""
        row = self._rows.get(job >> _BITS)
        if row is None:
            return NOWHERE
        cell = row << _BITS | job & _INSIDE
        level: int = self._cells[cell]
        if level:
            self._cells[cell] = NOWHERE
            self._singles -= 1
            if self._singles < self._low:
                self._free_rows()
        return level

    def put_all(self, ascending: NDArray[np.int64], levels: NDArray[np.int32]) -> None:
        """Store the level numbers of many jobs in an empty table; `ascending` are their ids, unique and in ascending order."""
        pages = ascending >> _BITS
        starts = np.flatnonzero(np.diff(pages, prepend=-1))
        sizes = np.diff(starts, append=len(pages))
        rows = np.arange(len(starts), dtype=np.int32)
        cells = np.zeros(max(64, len(starts) + len(starts) // 8) * _PAGE, dtype=np.int32)
        cells[np.repeat(rows.astype(np.int64) << _BITS, sizes) | ascending & _INSIDE] = levels
        self._hold(cells)
        self._rows = dict(zip(pages[starts].tolist(), rows.tolist(), strict=True))
        self._free = []
        self._length = len(starts)
        self._singles = len(ascending)
        self._low = self._singles // 2

    def within(self, first: int, last: int) -> Iterator[tuple[JobId, int]]:
        """Yield the jobs with ids from `first` to `last`, both included, and their level numbers; jobs in blocks are left out."""
        pages: Any = range(first >> _BITS, (last >> _BITS) + 1)
        if len(pages) > len(self._rows):
            pages = sorted(page for page in self._rows if page in pages)
        for page in pages:
            row = self._rows.get(page)
            if row is not None:
                for inside in range(_PAGE):
                    level = self._cells[row << _BITS | inside]
                    job = page << _BITS | inside
                    if level and first <= job <= last:
                        yield JobId(job), level

    def _new_row(self, page: int) -> int:
        if not self._free:
            if self._length * _PAGE == len(self._array):
                more = np.zeros((self._length // 2, _PAGE), dtype=np.int32)  # whole rows
                self._hold(np.concatenate([self._array, more.reshape(-1)]))
            self._free.append(self._length)
            self._length += 1
        row = self._rows[page] = self._free.pop()
        self._low = max(self._low, self._singles // 2)
        return row

    def _free_rows(self) -> None:
        used = np.any(self._array.reshape(-1, _PAGE), axis=1).tolist()
        gone = [page for page, row in self._rows.items() if not used[row]]
        self._free += [self._rows.pop(page) for page in gone]
        self._low = self._singles // 2

    # --- blocks -----------------------------------------------------------------------------------

    def block_of(self, job: JobId) -> IdRange | None:
        """Return the block of consecutive ids that contains a job; None if the job is in none."""
        if not self._blocks:
            return None
        at = bisect_right(self._blocks, job, key=_FIRST)
        return self._blocks[at - 1] if at and self._blocks[at - 1].last >= job else None

    def blocks_within(self, first: int, last: int) -> list[IdRange]:
        """Return the blocks that contain an id from `first` to `last`, both included."""
        start = bisect_right(self._blocks, first, key=_FIRST)
        if start and self._blocks[start - 1].last >= first:
            start -= 1
        return self._blocks[start : bisect_right(self._blocks, last, key=_FIRST)]

    def add_block(self, block: IdRange) -> None:
        """Add a block of jobs with consecutive ids; none of the jobs may be stored yet."""
        insort(self._blocks, block, key=_FIRST)
        self._in_blocks += block.last - block.first + 1

    def drop_block(self, block: IdRange) -> None:
        """Remove a block of jobs with consecutive ids, and with it all its jobs."""
        del self._blocks[bisect_left(self._blocks, block.first, key=_FIRST)]
        self._in_blocks -= block.last - block.first + 1

    def shorten(self, block: IdRange, first: int) -> None:
        """Make a block begin at a later id, `first`, and so remove the jobs before it."""
        self._in_blocks -= first - block.first
        block.first = first
