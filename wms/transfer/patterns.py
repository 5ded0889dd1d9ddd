"""Selects the files in a job's directory that match the job's output patterns.

Stagers of payloads load this module without any package, as they do the archives'.
"""

import contextlib
import fnmatch
import os
import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from wms.errors import Rejected
from wms.transfer.archive import ArchiveLimits, bad_name

NAMED_LEFT = 20
"""The largest number of names in `UnmatchedFiles`."""
PRINTED = 2
"""How many files are in an archive besides the selected ones: what was printed."""
_WALK_LIMIT = 2_000_000
"""The largest number of files and directories that are examined in a job's directory."""


class SelectedFiles(NamedTuple):
    """What a job's output patterns selected: files and empty directories, and the patterns and files that failed."""

    files: dict[str, Path]
    """The path of each selected file or empty directory, by its name in the output archive."""
    unmatched: tuple[str, ...] = ()
    """The output patterns that selected no file."""
    refused: tuple[str, ...] = ()
    """Files that match but cannot be packed, each as «name: reason». Those that there is no room for come first."""
    size: int = 0
    """How many bytes the selected files have together."""
    wanted: int = 0
    """How many bytes all matching files have together, with those that there is no room for."""
    unfit: int = 0
    """How many matching files there is no room for."""


def select(root: Path, patterns: tuple[str, ...], most_bytes: int | None = None) -> SelectedFiles:
    """Select the files below `root` that match output patterns: names, `*`, `?`, `[...]`, `**` for any directories.

    A directory that matches selects everything in it, empty directories too. As in a shell, a wildcard does not match a leading
    dot. Links are followed to files and directories inside `root` alone. If the files have more than `most_bytes` together, or
    are more than an archive may have, the largest are left out. The call blocks.

    Raise Rejected for an absolute pattern or one with `..`.
    """
    for pattern in patterns:
        check_pattern(pattern)
    choice = _Choice(Path(os.path.realpath(root)), patterns)
    kept, left_out = _fitting(choice.sizes, most_bytes)
    return SelectedFiles(
        unmatched=tuple(pattern for pattern in patterns if pattern not in choice.matched),
        files={name: choice.files[name] for name in choice.files if name in kept},
        refused=tuple(
            f"{name}: {choice.sizes[name]:,} bytes, for which there is no room" for name in left_out
        )
        + tuple(choice.refused),
        size=sum(choice.sizes[name] for name in kept),
        wanted=sum(choice.sizes.values()),
        unfit=len(left_out),
    )


def selects(pattern: str, name: str) -> bool:
    """Return whether an output pattern selects a file by its relative name. It may also name or match one of the file's directories."""
    parts, names = _parts(pattern), name.split("/")
    if not any(mark in pattern for mark in "*?["):
        return names[: len(parts)] == parts
    return _Pattern(parts).covers(names)


def _parts(pattern: str) -> list[str]:
    return [part for part in pattern.split("/") if part not in {"", "."}]


def _fitting(sizes: Mapping[str, int], most_bytes: int | None) -> tuple[set[str], list[str]]:
    """Return the names of the smallest files that fit together, and those of all others, the largest first."""
    by_size = sorted(sizes, key=lambda name: (sizes[name], name))
    room = sum(sizes.values()) if most_bytes is None else most_bytes
    ends = list(accumulate(sizes[name] for name in by_size))
    fit = min(bisect_right(ends, room), ArchiveLimits().members - PRINTED)
    return set(by_size[:fit]), by_size[fit:][::-1]


def check_pattern(pattern: str) -> None:
    """Raise Rejected for an output pattern that leads out of the job's directory."""
    if pattern.startswith("/") or ".." in pattern.split("/") or "\0" in pattern:
        raise Rejected("BAD_OUTPUT_PATTERN", f"not a name below the job's directory: {pattern!r}")


@dataclass(frozen=True)
class UnmatchedFiles:
    """Files in a job's directory that no output pattern selected."""

    names: tuple[str, ...] = ()
    """The names of such files, at most `NAMED_LEFT`."""
    count: int = 0
    """How many such files there are in all, named or not."""


def left_behind(root: Path, chosen: Container[str], unchanged_ns: int | None = None) -> UnmatchedFiles:
    """Return the files below `root` that are neither in `chosen` nor unchanged input files. The call blocks.

    `unchanged_ns` is the latest time in nanoseconds at which the status of an unchanged input file was changed; None: there are none. If there are
    too many files, or a directory cannot be read, only the files examined before that are counted.
    """
    names: list[str] = []
    count = 0
    for found in _walk(root, follow=False):
        with contextlib.suppress(OSError):
            name = found.name
            if found.is_file and name not in chosen and not _is_unchanged(root / name, unchanged_ns):
                count += 1
                if count <= NAMED_LEFT:
                    names.append(name)
    return UnmatchedFiles(tuple(names), count)


def _is_unchanged(path: Path, unchanged_ns: int | None) -> bool:
    return unchanged_ns is not None and path.lstat().st_ctime_ns <= unchanged_ns


class _Choice:
    """Collects the files and empty directories that patterns select."""

    def __init__(self, root: Path, patterns: Iterable[str]) -> None:
        self.files: dict[str, Path] = {}
        self.sizes: dict[str, int] = {}
        self.refused: list[str] = []
        self.matched = set[str]()
        self._root = root
        wild: dict[str, _Pattern] = {}
        for pattern in patterns:
            parts = _parts(pattern)
            if any(mark in pattern for mark in "*?["):
                wild[pattern] = _Pattern(parts)
            elif self._take_path("/".join(parts)):
                self.matched.add(pattern)
        if wild:
            self._take_matching(wild)

    def _take_path(self, name: str) -> bool:
        path = self._root / name
        if path.is_dir() and Path(os.path.realpath(path)).is_relative_to(self._root):
            taken = [self._take(each) for each in _walk(self._root, name)]
            return any(taken)
        return (path.exists() or path.is_symlink()) and self._take(_Found(name))

    def _take_matching(self, patterns: "Mapping[str, _Pattern]") -> None:
        for found in _walk(self._root):
            names = found.name.split("/")
            # A directory that matches stands for what is in it, so a name also matches by any of its parents.
            matching = [each for each, pattern in patterns.items() if pattern.covers(names)]
            if (matching or found.is_end) and self._take(found):
                self.matched.update(matching)

    def _take(self, found: "_Found") -> bool:
        name = found.name
        if name in self.files:
            return True
        real = Path(os.path.realpath(self._root / name))
        if reason := found.fault or self._unfit(name, real):
            self.refused.append(f"{name}: {reason}")
            return False
        self.files[name] = real
        self.sizes[name] = 0 if real.is_dir() else real.stat().st_size
        return True

    def _unfit(self, name: str, real: Path) -> str | None:
        if not real.is_relative_to(self._root):
            return "a link that leads out of the job's directory"
        if real.is_dir() and any(real.iterdir()):
            return "a link to a directory that it lies in"
        if not (real.is_file() or real.is_dir()):
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


class _Found(NamedTuple):
    """An entry of a job's directory: a file, a link, or an empty directory."""

    name: str
    is_file: bool = True
    fault: str = ""
    """Why what is below cannot be told; empty: it can."""
    is_end: bool = False
    """Whether the search ended there."""


def _walk(root: Path, start: str = "", *, follow: bool = True) -> Iterator[_Found]:
    """Yield all entries below the directory `start` that are no directories with entries, in order. Their names are relative to `root`.

    If `follow` is True, links to directories inside `root` are entered, but not one to a directory that it lies in.
    """
    count = 0
    waiting: list[tuple[str, frozenset[tuple[int, int]]]] = [(start, frozenset())]
    while waiting:
        name, above = waiting.pop()
        try:
            found = (root / name).stat()
            entries = sorted(os.scandir(root / name), key=lambda entry: entry.name)
        except OSError as error:
            yield _Found(name, is_file=False, fault=f"cannot be read: {error.strerror}")
            continue
        if name and not entries:
            yield _Found(name, is_file=False)
        here, below = above | {(found.st_dev, found.st_ino)}, list[str]()
        for entry in entries:
            count += 1
            own = f"{name}/{entry.name}" if name else entry.name
            if count > _WALK_LIMIT:
                fault = f"more than {_WALK_LIMIT:,} files: those from here on were not looked at"
                yield _Found(own, is_file=False, fault=fault, is_end=True)
                return
            is_within = own.count("/") <= ArchiveLimits().depth
            if is_within and (
                entry.is_dir(follow_symlinks=False) or (follow and _leads_in(entry, root, here))
            ):
                below.append(own)
            else:
                yield _Found(own)
        waiting += [(each, here) for each in reversed(below)]


def _leads_in(entry: "os.DirEntry[str]", root: Path, above: Container[tuple[int, int]]) -> bool:
    """Return whether an entry is a link to a directory inside `root` other than the directories `above` it."""
    try:
        if not (entry.is_symlink() and entry.is_dir()):
            return False
        found = entry.stat()
        return (found.st_dev, found.st_ino) not in above and Path(
            os.path.realpath(entry.path)
        ).is_relative_to(root)
    except OSError:
        return False
