"""The agent's side of a stager, the process of a job that handles its payload's files (see stager.py).

What a stager says is taken as hostile: a payload may have fooled it. So answers have bounded sizes and checked forms, an
archive is a stream of bounded length, and an opened file must be a regular one of the payload's own on the same disk.
"""

import contextlib
import os
import select
import socket
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Annotated, Any, BinaryIO, TypeVar, cast

import msgspec

from services.job_agent.payload import stager
from wms.errors import Rejected, Unavailable
from wms.transfer import UnmatchedFiles

ANSWER_SECONDS = 600.0
"""The longest time in seconds until a request is sent, and then until its whole answer has come."""
CHUNK = 1024 * 1024
SLACK = 2 * CHUNK
"""How many bytes over its limit an archive may come, so that the stager can say which file took it there."""
T = TypeVar("T")
Texts = Annotated[list[str], msgspec.Meta(max_length=10_000)]
Count = Annotated[int, msgspec.Meta(ge=0)]


class Ready(msgspec.Struct, frozen=True):
    """What a stager says once all inputs are there."""

    is_own: bool
    """Whether the program is one of the inputs."""
    unchanged_ns: int | None
    """The latest time, in nanoseconds, at which the status of an input was changed. None: there are none."""


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """What a payload left: how the output patterns chose, and all that they did not."""

    chosen: Count = 0
    """How many files the output patterns chose."""
    size: Count = 0
    """How many bytes the chosen files have together."""
    wanted: Count = 0
    """How many bytes all files have together that the patterns match."""
    unfit: Count = 0
    """How many of these there is no room for."""
    unmatched: Texts = []
    """The output patterns that chose no file."""
    refused: Texts = []
    """Files that match but cannot be sent, each as «name: reason»."""
    left: Texts = []
    left_count: Count = 0
    disk_bytes: Count = 0
    """The bytes on disk of the payload's directories."""

    @property
    def left_behind(self) -> UnmatchedFiles:
        """The files that no pattern chose."""
        return UnmatchedFiles(tuple(self.left), self.left_count)


class _Found(msgspec.Struct, frozen=True):
    found: bool


class _Cleared(msgspec.Struct, frozen=True):
    is_clean: bool


class _Nothing(msgspec.Struct, frozen=True):
    pass


class _Timed:
    """A socket that takes ANSWER_SECONDS for all that is received through it, however slowly that drips."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link
        self._until = time.monotonic() + ANSWER_SECONDS

    def __getattr__(self, name: str) -> Any:
        self._link.settimeout(max(1e-3, self._until - time.monotonic()))
        return getattr(self._link, name)


class StagerLink:
    """The agent's end of the socket to one stager. Its methods block.

    `disk` is the device number of the file system with the payload's directories, `owner` the user whose files they are; None:
    any user. All methods raise Unavailable if the stager has ended, does not answer, or answers what it may not.
    """

    def __init__(self, link: socket.socket, disk: int, owner: int | None) -> None:
        link.settimeout(ANSWER_SECONDS)
        self._link = link
        self._disk = disk
        self._owner = owner

    def close(self) -> None:
        """Let the stager end."""
        self._link.close()

    # --- before the payload ---

    def unpack(self, archive: Path, directory: str) -> None:
        """Unpack an input archive into a directory below the working directory; empty: into that itself.

        Raise Rejected if it is unsafe, or takes more disk than the job may have (DISK_LIMIT).
        """
        with archive.open("rb") as file:
            self._ask("unpack", _Nothing, file, directory=directory)

    def put(self, source: Path, name: str, *, executable: bool) -> None:
        """Copy a fetched input file into the working directory. Raise Rejected if the name is taken or the disk too small."""
        with source.open("rb") as file:
            self._ask("put", _Nothing, file, name=name, executable=executable)

    def give(self, files: Mapping[str, str], directories: Iterable[str]) -> None:
        """Write secret files, texts by file name, into the scratch directory, and make directories there."""
        self._ask("give", _Nothing, files=files, directories=list(directories))

    def ready(self, executable: str, stdin: str) -> Ready:
        """Finish the preparation of the inputs. Raise Rejected if the standard input `stdin` is none of them."""
        return self._ask("ready", Ready, executable=executable, stdin=stdin)

    # --- after the payload ---

    def name_printed(self, name: str, printed: Path | None) -> None:
        """Make a file `name` with what was printed, unless there is one. `printed` is a file of the agent; None: nothing was printed."""
        with contextlib.ExitStack() as opened:
            files = [opened.enter_context(printed.open("rb"))] if printed else []
            self._ask("name_printed", _Nothing, *files, name=name)

    def select(
        self, patterns: Iterable[str], unchanged_ns: int | None, taken: Iterable[str], room: int
    ) -> Selected:
        """Choose outputs by patterns: at most `room` bytes. `taken` are names that no output may have.

        Raise Rejected for a pattern that leads away.
        """
        return self._ask(
            "select",
            Selected,
            patterns=list(patterns),
            unchanged_ns=unchanged_ns,
            taken=list(taken),
            room=room,
        )

    def pack(self, printed: Mapping[str, BinaryIO], target: IO[bytes], most: int, *, chosen: bool) -> None:
        """Write an archive to `target`: the chosen files, if they are wanted, and what was printed. It has at most `most` bytes.

        Raise Rejected if files cannot be packed or take more.
        """
        reading, writing = os.pipe()
        with os.fdopen(reading, "rb", 0) as stream, self._whole():
            with os.fdopen(writing, "wb", 0) as end:
                names = list(printed)
                self._send("pack", [end, *printed.values()], chosen=chosen, names=names, most=most)
            for data in _chunks(stream.fileno(), most + SLACK):
                target.write(data)
        self._heard(_Nothing)

    def output(self, name: str) -> BinaryIO | None:
        """Return the opened output file with this name; None if there is none. Raise Rejected for a file that must not be sent."""
        self._send("output", [], name=name)
        answer, files = self._heard(_Found)
        if not answer.found or len(files) != 1:
            _close(files)
            return None
        try:
            self._judge(name, os.fstat(files[0].fileno()))
        except BaseException:
            _close(files)
            raise
        return files[0]

    def clear(self) -> bool:
        """Delete all files of the payload. Return whether its directories are as they were made."""
        return self._ask("clear", _Cleared).is_clean

    # ---

    @contextlib.contextmanager
    def _whole(self) -> Iterator[None]:
        """In this context, an error closes the socket: the rest of an answer would be taken for the next one."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _judge(self, name: str, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode):
            raise Rejected("BAD_OUTPUT", f"the output {name!r} is not a regular file")
        if found.st_dev != self._disk or (self._owner is not None and found.st_uid != self._owner):
            raise Rejected("BAD_OUTPUT", f"the output {name!r} is another user's file")

    def _ask(self, what: str, kind: type[T], /, *files: BinaryIO, **fields: object) -> T:
        self._send(what, files, **fields)
        answer, sent = self._heard(kind)
        _close(sent)
        return answer

    def _send(self, what: str, files: Iterable[BinaryIO], /, **fields: object) -> None:
        try:
            stager.send(self._link, {"do": what, **fields}, files)
        except OSError as error:
            raise Unavailable(f"the stager of this job ended: {error}") from None

    def _heard(self, kind: type[T]) -> tuple[T, list[BinaryIO]]:
        try:
            heard = stager.receive(cast("socket.socket", _Timed(self._link)), stager.REPLY_MOST)
        except (OSError, ValueError, RecursionError) as error:
            raise Unavailable(f"the stager of this job does not answer: {error}") from None
        if heard is None:
            raise Unavailable("the stager of this job ended")
        answer, files = heard
        try:
            return _taken(answer, kind), files
        except BaseException:
            _close(files)
            raise


def _taken(answer: Any, kind: type[T]) -> T:
    """Return the answer in the form that was asked for. Raise Rejected or Unavailable if it says so, or has another form."""
    try:
        if "fault" in answer:
            raise Rejected(*msgspec.convert(answer["fault"], tuple[str, str, str]))
        if "failed" in answer:
            raise OSError(msgspec.convert(answer["failed"], str)[:500])
        return msgspec.convert(answer, kind)
    except (msgspec.ValidationError, TypeError) as error:
        raise Unavailable(f"the stager of this job says what it may not: {error}") from None


def _chunks(descriptor: int, most: int) -> Iterator[bytes]:
    """Yield what comes through a pipe until its end. Raise Unavailable if that is more than `most` bytes, or takes too long."""
    left, until = most, time.monotonic() + ANSWER_SECONDS
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while True:
        if not poll.poll(1e3 * max(0.0, until - time.monotonic())):
            raise Unavailable("the outputs of this job were not packed in time")
        data = os.read(descriptor, CHUNK)
        if not data:
            return
        left -= len(data)
        if left < 0:
            raise Unavailable("the stager of this job packs more than it may")
        yield data


def _close(files: Iterable[BinaryIO]) -> None:
    for each in files:
        each.close()
