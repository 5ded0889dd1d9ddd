"""Selects the files in a job's directory that match the job's output patterns."""

import contextlib
import fnmatch
import os
import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

import msgspec

from wms.errors import Rejected
from wms.transfer.archive import ArchiveLimits, bad_name

NAMED_LEFT = 20
"""The largest number of names in `UnmatchedFiles`."""
_WALK_LIMIT = 200_000
"""The largest number of files that are examined below one directory."""


class SelectedFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What a job's output patterns selected: the files, and the patterns and files that failed."""

    files: dict[str, Path]
    """The path of each selected file, by its name in the output archive."""
    unmatched: tuple[str, ...] = ()
    """The output patterns that selected no file."""
    refused: tuple[str, ...] = ()
    """Files that match but cannot be packed, each as «name: reason»."""
    size: int = 0
    """How many bytes the selected files have together."""


def select(root: Path, patterns: tuple[str, ...]) -> SelectedFiles:
    """Select the files below `root` that match output patterns: names, `*`, `?`, `[...]`, `**` for any directories.

    A directory that matches selects everything in it. As in a shell, a wildcard does not match a leading dot. Links are
    followed only to files inside `root`, and linked directories are never entered. The call blocks.

    Raise Rejected for an absolute pattern or one with `..`, or if there are too many files.
    """
    base = Path(os.path.realpath(root))
    choice = _Choice(base)
    return SelectedFiles(
        unmatched=tuple(pattern for pattern in patterns if not choice.take(pattern)),
        files=choice.files,
        refused=tuple(choice.refused),
        size=choice.size,
    )


class UnmatchedFiles(msgspec.Struct, frozen=True):
    """Files in a job's directory that no output pattern selected."""

    names: tuple[str, ...] = ()
    """The names of such files, at most `NAMED_LEFT`."""
    count: int = 0
    """How many such files there are in all, named or not."""


def left_behind(root: Path, chosen: Container[str], known: Mapping[str, int]) -> UnmatchedFiles:
    """Return the files below `root` that are neither in `chosen` nor unchanged input files. The call blocks.

    `known` has the modification time of each input file, in nanoseconds, when it was fetched. If there are too many files, or a directory cannot be
    read, only the files examined before that are counted.
    """
    names: list[str] = []
    count = 0
    with contextlib.suppress(Rejected, OSError):
        for name in _walk(root):
            if name not in chosen and known.get(name) != (root / name).lstat().st_mtime_ns:
                count += 1
                if count <= NAMED_LEFT:
                    names.append(name)
    return UnmatchedFiles(tuple(names), count)


class _Choice:
    """Collects the files that patterns select."""

    def __init__(self, root: Path) -> None:
        self.files: dict[str, Path] = {}
        self.refused: list[str] = []
        self.size = 0
        self._root = root
        self._names: list[str] | None = None

    def take(self, pattern: str) -> bool:
        """Add the files that match the pattern. Return whether any did. Raise Rejected for a pattern that leads outside the directory."""
        parts = [part for part in pattern.split("/") if part not in {"", "."}]
        if pattern.startswith("/") or ".." in parts or "\0" in pattern:
            raise Rejected("BAD_OUTPUT_PATTERN", f"not a name below the job's directory: {pattern!r}")
        if not any(mark in pattern for mark in "*?["):
            return self._take_path("/".join(parts) or ".")
        matching = _Pattern(parts)
        # A directory that matches stands for what is in it, so a name also matches by any of its parents.
        found = [self._take_file(name) for name in self._all() if matching.covers(name.split("/"))]
        return any(found)

    def _take_path(self, name: str) -> bool:
        path = self._root / name
        if path.is_dir() and not path.is_symlink():
            prefix = "" if name == "." else f"{name}/"
            taken = [self._take_file(prefix + below) for below in _walk(path)]
            return any(taken)
        return (path.exists() or path.is_symlink()) and self._take_file(name)

    def _all(self) -> list[str]:
        if self._names is None:
            self._names = list(_walk(self._root))
        return self._names

    def _take_file(self, name: str) -> bool:
        if name in self.files:
            return True
        real = Path(os.path.realpath(self._root / name))
        if reason := self._unfit(name, real):
            self.refused.append(f"{name}: {reason}")
            return False
        self.files[name] = real
        self.size += real.stat().st_size
        return True

    def _unfit(self, name: str, real: Path) -> str | None:
        if not real.is_relative_to(self._root):
            return "a link that leads out of the job's directory"
        if not real.is_file():
            return "not a regular file"
        return bad_name(name, ArchiveLimits())


class _Pattern:
    """A pattern split into parts; the part `**` stands for any number of directories."""

    def __init__(self, parts: list[str]) -> None:
        self._parts = [None if part == "**" else (_part(part), part.startswith(".")) for part in parts]

    def covers(self, names: list[str]) -> bool:
        """Return whether the path, given as its parts, or one of its directories matches the pattern."""
        states = self._open({0})
        for name in names:
            states = self._open({after for state in states if (after := self._step(state, name)) is not None})
            if len(self._parts) in states:
                return True
            if not states:
                return False
        return False

    def _open(self, states: set[int]) -> set[int]:
        """Return the states, completed with those that follow if `**` stands for no directory. A state is an index of a pattern's part."""
        for state in range(len(self._parts)):
            if state in states and self._parts[state] is None:
                states.add(state + 1)
        return states

    def _step(self, state: int, name: str) -> int | None:
        if state == len(self._parts):
            return None
        part = self._parts[state]
        if part is None:
            return None if name.startswith(".") else state
        expression, dotted = part
        if name.startswith(".") and not dotted:
            return None
        return state + 1 if expression.fullmatch(name) else None


def _part(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))


def _walk(root: Path) -> Iterator[str]:
    """Yield the relative names of all entries below `root` that are not directories, in order. Linked directories are included."""
    count = 0
    for directory, below, files in os.walk(root):
        below.sort()
        here = Path(directory)
        linked = [name for name in below if (here / name).is_symlink()]
        for name in sorted(files + linked):
            count += 1
            if count > _WALK_LIMIT:
                raise Rejected("TOO_MANY_FILES", f"more than {_WALK_LIMIT} files to choose the outputs from")
            yield str((here / name).relative_to(root))
