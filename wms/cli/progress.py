"""Progress of many jobs on standard error: live on a terminal, else a line every few seconds."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from wms.cli.printing import console, note

BAR_FROM = 20
"""From how many steps on a bar is shown."""
LINE_SECONDS = 5.0
"""How many seconds at least pass between two lines of progress, if standard error is no terminal."""

_WAITING = ("Submitting", "Received", "Checking", "Scouting", "Staging", "Waiting", "Rescheduled", "Held")
_RUNNING = ("Matched", "Running", "Stalled", "Completing", "Completed")
_FAILED = ("Failed", "Killed", "Deleted")


class ProgressBoard:
    """A display of the progress of several tasks, one below the other. Each has a bar, counts of jobs, and a rate."""

    def __init__(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<14}"),
            BarColumn(bar_width=30),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[said]}"),
            TimeElapsedColumn(),
            console=console(stderr=True),
        )
        self._live = self._progress.console.is_terminal
        self._said_at = time.monotonic()

    def __enter__(self) -> Self:
        if self._live:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._progress.stop()

    def task(self, name: str, total: int) -> "Task":
        """Add a task of `total` items and return it."""
        if not self._live:
            note(f"{name} ...")
        return Task(self, self._progress, self._progress.add_task(name, total=total, said=""), name, total)

    def say(self, line: str, *, last: bool) -> None:
        """Print a line of progress on standard error if it is no terminal.

        A line less than `LINE_SECONDS` after the previous one is skipped, unless `last` is True.
        """
        if not self._live and (last or time.monotonic() - self._said_at > LINE_SECONDS):
            self._said_at = time.monotonic()
            note(line)


class Task:
    """One task of a progress board, of `total` items."""

    def __init__(
        self, board: ProgressBoard, progress: Progress, task_id: TaskID, name: str, total: int
    ) -> None:
        self._board = board
        self._progress = progress
        self._id = task_id
        self._name = name
        self._total = total
        self._done = 0
        self._began = time.monotonic()

    def reach(self, done: int) -> None:
        """Show that `done` of the task's items are done, and how many are done in a second."""
        rate = done / max(0.001, time.monotonic() - self._began)
        self._show(done, f"{rate:,.0f}/s")

    def counts(self, counts: Mapping[str, int]) -> None:
        """Show how many jobs of the task are in each state, and how many are Done in a second."""
        waiting, running, failed = (_sum(counts, states) for states in (_WAITING, _RUNNING, _FAILED))
        done = counts.get("Done", 0)
        rate = done / max(0.001, time.monotonic() - self._began)
        said = f"{sum(counts.values())} submitted  {waiting} waiting  {running} running  {done} done  {rate:.1f}/s"
        self._show(done + failed, f"{said}  {failed} FAILED" if failed else said)

    def _show(self, done: int, said: str) -> None:
        news, self._done = done != self._done, done
        self._progress.update(self._id, completed=done, said=said)
        self._board.say(
            f"{self._name}: {done}/{self._total} {said}".rstrip(), last=news and done >= self._total
        )


def _sum(counts: Mapping[str, int], states: tuple[str, ...]) -> int:
    return sum(counts.get(state, 0) for state in states)


@contextmanager
def count_bar(words: str, total: int) -> Iterator[Callable[[], None]]:
    """Show a bar of `total` steps under these words, if they are many and standard error is a terminal. Yield what each step calls."""
    if total < BAR_FROM or not sys.stderr.isatty():
        yield lambda: None
        return
    with Progress(TextColumn(words), BarColumn(), MofNCompleteColumn(), console=console(stderr=True)) as bar:
        task = bar.add_task(words, total=total)
        yield lambda: bar.advance(task)
