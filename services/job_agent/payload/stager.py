"""The stager: a process of a job that does all that is done to the payload's files before its start and after its end.

It is started as a payload is, by a fork of the container's first process or of the shepherd: under the payload's account, in
its namespaces and limits. So it reaches nothing that the payload cannot reach, whatever names the payload made. The agent
sends requests over a socket, each with its open files, and gets answers. No path leaves or enters as one that the agent
opens:

    {"do": "unpack", "directory"} + archive           -> {}               an input archive
    {"do": "put", "name", "executable"} + file        -> {}               an input by URL
    {"do": "give", "files", "directories"}            -> {}               secret files and directories for the scratch directory
    {"do": "ready", "executable", "stdin"}            -> {"is_own", "unchanged_ns"}
    {"do": "name_printed", "name"} + file             -> {}               what was printed, under its name
    {"do": "select", "patterns", "unchanged_ns", "taken", "room"} -> {"chosen", "size", "wanted", "unfit", "unmatched", "refused", "left",
                                                          "left_count", "disk_bytes"}
    {"do": "pack", "chosen", "names", "most"} + pipe, files -> {}         the selected files as an archive into the pipe
    {"do": "output", "name"}                          -> {"found"} + file
    {"do": "clear"}                                   -> {"is_clean"}     delete all files
    any                                               -> {"fault": [code, message, remedy]} or {"failed"}

A message is its length in four bytes and JSON. The shepherd and containers load this module by its path, so it has no
dependencies. What it needs of the package `wms` they read before the package's directory is hidden.

Longer than 400 lines, because it is loaded by its path: a second file would be a second one to find and to load.
"""

# pathlib and contextlib would double the time to start of the shepherd.
# ruff: noqa: PTH101, PTH103, PTH108, PTH123, SIM105

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import stat
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from typing import Any, BinaryIO, NoReturn

    from wms.transfer.archive import Allowance
    from wms.transfer.patterns import SelectedFiles

NEEDED = ("wms.errors", "wms.transfer.archive", "wms.transfer.patterns")
"""The modules of the package `wms` that a stager runs."""
MODE = 0o700
LENGTH = struct.Struct("!I")
REQUEST_MOST, REPLY_MOST = 64 * 1024 * 1024, 4 * 1024 * 1024
FILES_MOST = 8
"""The most open files that come with one message."""
NAMES_MOST = 1_000_000
"""The most names of files that are counted at the end, so that the memory for that is bounded. While it ran, all were."""
TOLD_MOST, NAME_MOST = 1_000, 1_000
"""How many names a stager tells in one list, and how many characters of each."""

_sources: dict[str, tuple[str, bytes]] = {}


# --- loading ---


def read_sources(package: str) -> None:
    """Read the source of the modules that a stager runs, once. `package` is the directory of the package `wms`."""
    for name in () if _sources else NEEDED:
        path = f"{package}/{'/'.join(name.split('.')[1:])}.py"
        with open(path, "rb") as file:
            _sources[name] = path, file.read()


def load() -> None:
    """Load the modules whose sources were read, without the packages that they are in. Later stagers are forks with these modules."""
    for name, (path, source) in _sources.items():
        if name in sys.modules:
            continue
        for package in ("wms", "wms.transfer"):
            sys.modules.setdefault(package, type(sys)(package))
        module = sys.modules[name] = type(sys)(name)
        module.__file__ = path
        exec(compile(source, path, "exec"), module.__dict__)  # noqa: S102 - our own module, whose directory is hidden here


# --- the process ---


def be_stager(order: Mapping[str, Any], descriptor: int) -> NoReturn:
    """Serve the agent at the other end of the socket `descriptor` until it closes that. Then end; it never returns.

    `order` is the agent's order: the directories `cwd` and `scratch`, and the limit `disk_bytes`.
    """
    try:
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(descriptor, 0)
        os.closerange(1, os.sysconf("SC_OPEN_MAX"))
        Stager(socket.socket(fileno=0), order["cwd"], order["scratch"], order["disk_bytes"]).serve()
    finally:
        os._exit(0)


class Stager:
    """Carries out one request of the agent after the other in the directories `work` and `scratch` of a payload.

    `disk_bytes` is the most that all inputs may take on disk; None: no limit.
    """

    def __init__(self, agent: socket.socket, work: str, scratch: str, disk_bytes: int | None) -> None:
        from pathlib import Path

        from wms.transfer.archive import Allowance
        from wms.transfer.patterns import SelectedFiles

        self._agent = agent
        self._work = Path(work)
        self._scratch = scratch
        self._allowance: Allowance = Allowance(disk_bytes)
        self._selected: SelectedFiles = SelectedFiles({})

    def serve(self) -> None:
        """Answer requests until the agent closes the socket."""
        while (request := receive(self._agent, REQUEST_MOST)) is not None:
            message, files = request
            try:
                answer, sent = self._answer(message, files)
            finally:
                for each in files:
                    each.close()
            send(self._agent, answer, sent)
            for each in sent:
                each.close()

    def _answer(
        self, message: dict[str, Any], files: list[BinaryIO]
    ) -> tuple[dict[str, Any], list[BinaryIO]]:
        from wms.errors import Rejected, Unavailable

        try:
            done = getattr(self, f"_{message.pop('do')}")(*files, **message)
        except Rejected as error:
            return {"fault": [error.code, error.message, error.remedy]}, []
        except (Unavailable, OSError, MemoryError, RecursionError) as error:
            return {"failed": str(error)}, []
        return done if isinstance(done, tuple) else (done or {}, [])

    # --- before the payload ---

    def _unpack(self, archive: BinaryIO, directory: str) -> None:
        from wms.errors import Rejected
        from wms.transfer.archive import unpack

        to = self._work / directory
        try:
            to.mkdir(mode=0o755, exist_ok=True)
        except FileExistsError:
            raise Rejected("SANDBOX_UNSAFE", f"an input has a file of the name {to.name}") from None
        unpack(archive, to, None, self._allowance)

    def _put(self, source: BinaryIO, name: str, executable: bool) -> None:  # noqa: FBT001 - a field of the request
        from wms.errors import Rejected

        path = self._work / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._allowance.take(os.fstat(source.fileno()).st_size)
            with open(path, "xb", opener=_new_file) as target:
                _copy(source, target)
                os.fchmod(target.fileno(), 0o755 if executable else 0o644)
        except NotADirectoryError:
            raise Rejected("BAD_INPUT_NAME", f"the input {name!r} lies below another file") from None
        except FileExistsError:
            is_below = not path.parent.is_dir()
            where = "lies below another file" if is_below else "is in the input sandbox already"
            raise Rejected("BAD_INPUT_NAME", f"the input {name!r} {where}") from None

    def _give(self, files: dict[str, str], directories: list[str]) -> None:
        give(self._scratch, files)
        for each in directories:
            os.makedirs(f"{self._scratch}/{each}")

    def _ready(self, executable: str, stdin: str) -> dict[str, Any]:
        """Make the program executable if it is an input, and note when the status of an input was changed last.

        What the payload changes is known by a later time. It cannot set that one.
        """
        self._check_stdin(stdin)
        is_own = self._make_executable(executable)
        found = (path.lstat() for path in self._work.rglob("*"))
        times = [each.st_ctime_ns for each in found if stat.S_ISREG(each.st_mode)]
        return {"is_own": is_own, "unchanged_ns": max(times, default=None)}

    def _check_stdin(self, name: str) -> None:
        from wms.errors import Rejected

        base = os.path.realpath(self._work)
        if name and not (os.path.realpath(self._work / name) + "/").startswith(f"{base}/"):
            raise Rejected("BAD_STDIN", f"the standard input {name!r} lies outside the job's directory")
        if name and not (self._work / name).is_file():
            raise Rejected("NO_STDIN", f"the standard input {name!r} is not among the job's inputs")

    def _make_executable(self, executable: str) -> bool:
        if executable.startswith("/") or ".." in executable.split("/"):
            return False
        path = self._work / executable
        try:
            found = path.lstat()
            if stat.S_ISREG(found.st_mode):
                path.chmod(stat.S_IMODE(found.st_mode) | stat.S_IXUSR)
                return True
        except (OSError, ValueError):
            pass  # the attempt to start it gives a better error
        return False

    # --- after the payload ---

    def _name_printed(self, *printed: BinaryIO, name: str) -> None:
        """Make a new file with what was printed. If a file has that name, the name leads away or the disk fails, nothing happens."""
        parts = name.split("/")
        if name.startswith("/") or ".." in parts:
            return
        path = self._work / name
        base = os.path.realpath(self._work)
        try:
            if (os.path.realpath(path.parent) + "/").startswith(f"{base}/"):
                path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                with open(path, "xb", opener=_new_file) as target:
                    for each in printed:
                        _copy(each, target)
        except OSError:
            pass

    def _select(
        self, patterns: list[str], unchanged_ns: int | None, taken: list[str], room: int
    ) -> dict[str, Any]:
        """Select outputs by patterns, with at most `room` bytes. `taken` are the names in the archive of what was printed."""
        from wms.transfer.patterns import left_behind, select

        found = select(self._work, tuple(patterns), room)
        doubled = [name for name in found.files if name.split("/")[0] in taken]
        self._selected = found._replace(
            files={name: path for name, path in found.files.items() if name not in doubled}
        )
        left = left_behind(self._work, self._selected.files, unchanged_ns)
        refused = (*found.refused, *(f"{name}: the name of what was printed" for name in doubled))
        return {
            "chosen": len(self._selected.files),
            "size": found.size,
            "wanted": found.wanted,
            "unfit": found.unfit,
            "unmatched": list(found.unmatched),
            "refused": _told(refused),
            "left": _told(left.names),
            "left_count": left.count,
            "disk_bytes": disk_bytes([str(self._work), self._scratch]),
        }

    def _pack(self, stream: BinaryIO, *printed: BinaryIO, chosen: bool, names: list[str], most: int) -> None:
        from wms.transfer.archive import pack

        members: dict[str, Path | bytes | BinaryIO] = dict(self._selected.files) if chosen else {}
        members |= dict(zip(names, printed, strict=True))
        pack(members, _Pipe(stream.fileno()), most)

    def _output(self, name: str) -> tuple[dict[str, Any], list[BinaryIO]]:
        from wms.errors import Rejected

        real = os.path.realpath(self._work / name)
        if not (real + "/").startswith(f"{os.path.realpath(self._work)}/"):
            raise Rejected("BAD_OUTPUT", f"the output {name!r} leads out of the job's directory")
        try:
            # Not blocking, should the name be a fifo's.
            file = os.fdopen(
                os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW), "rb", 0
            )
        except (FileNotFoundError, NotADirectoryError):
            return {"found": False}, []
        except OSError as error:
            raise Rejected("BAD_OUTPUT", f"the output {name!r} cannot be read: {error.strerror}") from None
        return {"found": True}, [file]

    def _clear(self) -> dict[str, Any]:
        places = (str(self._work), self._scratch)
        for each in places:
            empty(each)
        return {"is_clean": as_made(places)}


class _Pipe:
    """The pipe into which an archive is packed, and a count of its bytes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._written = 0

    def write(self, data: bytes) -> int:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        pass


# --- messages, at both ends ---


def send(link: socket.socket, message: dict[str, Any], files: Iterable[BinaryIO] = ()) -> None:
    """Send a message with these open files. Raise OSError if the other end is closed."""
    data = json.dumps(message).encode()
    socket.send_fds(link, [LENGTH.pack(len(data))], [file.fileno() for file in files])
    link.sendall(data)


def receive(link: socket.socket, most: int) -> tuple[dict[str, Any], list[BinaryIO]] | None:
    """Return the next message, of at most `most` bytes, and its open files. None if the other end is closed.

    Raise ValueError if it is no message.
    """
    head, descriptors, _, _ = socket.recv_fds(link, LENGTH.size, FILES_MOST)
    files: list[BinaryIO] = []
    message = None
    try:
        while descriptors:
            each = descriptors[0]
            files.append(os.fdopen(each, "r+b" if _is_pipe(each) else "rb", 0))  # not of a directory
            del descriptors[0]
        message = _message(link, head, most)
    finally:
        for number in descriptors:
            os.close(number)
        if message is None:
            for file in files:
                file.close()
    return None if message is None else (message, files)


def _message(link: socket.socket, begun: bytes, most: int) -> dict[str, Any] | None:
    head = _exactly(link, begun, LENGTH.size)
    if head is None:
        return None
    (size,) = LENGTH.unpack(head)
    if size > most:
        raise ValueError(f"a message of {size} bytes")
    body = _exactly(link, b"", size)
    message: dict[str, Any] | None = None if body is None else json.loads(body)
    return message


def _is_pipe(descriptor: int) -> bool:
    return stat.S_ISFIFO(os.fstat(descriptor).st_mode)


def _exactly(link: socket.socket, begun: bytes, size: int) -> bytes | None:
    data = bytearray(begun)
    while len(data) < size:
        more = link.recv(min(size - len(data), 1 << 20))
        if not more:
            return None
        data += more
    return bytes(data)


# --- the payload's directories ---


def give(scratch: str, files: Mapping[str, str]) -> None:
    """Write the secret files of a payload into its scratch directory. Raise OSError if that fails."""
    for name, text in files.items():
        descriptor = os.open(f"{scratch}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)


def is_untouched(order: Mapping[str, Any]) -> bool:
    """Return whether a payload left nothing in its directories but the files that it was given. These are removed."""
    for name in order["given"]:
        try:
            os.unlink(f"{order['scratch']}/{name}")
        except OSError:
            pass
    return as_made((order["cwd"], order["scratch"]))


def as_made(places: Iterable[str]) -> bool:
    """Return whether these directories are empty, with the mode and the attributes with which they were made."""
    try:
        return all(_is_empty(each) and _has_own_mode(each) for each in places)
    except OSError:
        return False


def _is_empty(place: str) -> bool:
    with os.scandir(place) as found:  # and not os.listdir: there may be millions
        return next(found, None) is None


def _has_own_mode(place: str) -> bool:
    mode = os.lstat(place).st_mode
    # The bit that gives files a group comes from the parent directory.
    return stat.S_ISDIR(mode) and stat.S_IMODE(mode) & ~stat.S_ISGID == MODE and not _attributes(place)


def _attributes(place: str) -> list[str]:
    """Return the names of a directory's attributes that its owner may have set, including access control lists."""
    try:
        names = os.listxattr(place, follow_symlinks=False)
        return [name for name in names if name.startswith(("user.", "system."))]
    except OSError:
        return []  # the file system has none


def empty(place: str) -> None:
    """Delete all in a directory, whatever modes the payload set, however deep. What cannot be deleted stays."""
    for name in _attributes(place):
        try:
            os.removexattr(place, name, follow_symlinks=False)
        except OSError:
            pass
    try:
        os.chmod(place, MODE)
        top = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        while _emptied(top, top):
            pass
    finally:
        os.close(top)


def _emptied(top: int, directory: int) -> int:
    """Delete what is in an opened directory. Return how many names were deleted or moved.

    The directories in a subdirectory move up to `top` before it is deleted: so no path and no recursion grows with the depth.
    """
    gone = 0
    with os.scandir(directory) as found:  # and not os.listdir: there may be millions
        for entry in found:
            try:
                os.unlink(entry.name, dir_fd=directory)
                gone += 1
            except IsADirectoryError:
                gone += _without_directory(top, directory, entry.name)
            except OSError:
                continue
    return gone


def _without_directory(top: int, directory: int, name: str) -> int:
    if directory != top:
        return _moved(top, directory, name)
    try:
        os.chmod(name, MODE, dir_fd=directory)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    except OSError:
        return 0
    try:
        gone = _emptied(top, below)
    finally:
        os.close(below)
    try:
        os.rmdir(name, dir_fd=directory)
    except OSError:
        return gone
    return gone + 1


def _moved(top: int, directory: int, name: str) -> int:
    try:
        os.rmdir(name, dir_fd=directory)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            return 0
        try:
            os.chmod(name, MODE, dir_fd=directory)  # to rename a directory, one must be able to write to it
            os.rename(name, os.urandom(8).hex(), src_dir_fd=directory, dst_dir_fd=top)
        except OSError:
            return 0
    return 1


def disk_bytes(directories: Iterable[str | Path]) -> int:
    """Return the bytes on disk of all files below these directories, of NAMES_MOST names at most. Blocking.

    Each of several hard links to a file counts its share of it.
    """
    total, left = 0, NAMES_MOST
    waiting = [str(directory) for directory in directories]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    if not left:
                        return total
                    left -= 1
                    status = entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                        total += status.st_blocks * 512
                    else:
                        total += status.st_blocks * 512 // max(1, status.st_nlink)
        except OSError:
            continue
    return total


def _new_file(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o644)


def _copy(source: BinaryIO, target: BinaryIO) -> None:
    while data := source.read(1 << 20):
        target.write(data)


def _told(names: Iterable[str]) -> list[str]:
    """Return the first names, cut and made valid text."""
    return [name[:NAME_MOST].encode("utf-8", "replace").decode() for name in list(names)[:TOLD_MOST]]
