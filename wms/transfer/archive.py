"""Sandbox archives (tar.gz). Packing gives equal bytes for equal content; unpacking treats every archive as hostile.

An archive contains only regular files and directories. Symbolic links are refused rather than confined. A link that
points inside could be turned outside by a later member, or by a second archive in the same directory. No job needs
links to carry files. Packing stores the content to which a link leads instead.

Packing and unpacking use the same limits: content that cannot be unpacked is not packed. The number of unpacked bytes
is limited, which stops archive bombs. The compression ratio does not matter, since zeros are data too.

Equal bytes hold for one version of the compressor. Another zlib may give another digest for the same content, which
only costs a second object in the store.

Stagers of payloads load this module without any package, so it has no dependencies but `wms.errors`. Longer than 400 lines for the same reason: a
second file would be one more to read before each payload whose files are hidden from it.
"""

import gzip
import io
import os
import stat
import tarfile
import unicodedata
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PosixPath
from typing import IO, BinaryIO, NamedTuple, Protocol, Self, cast

from wms.errors import Rejected, Unavailable

MIB = 1024 * 1024
"""Bytes in one mebibyte."""
MAX_ARCHIVE = 100 * MIB
"""The default limit on the size of a packed archive, in bytes."""
CHUNK = 256 * 1024
"""How many bytes are read from a file at a time."""
BLOCK = 4_096
"""The bytes on disk by which files and directories are counted."""
DISK_LIMIT = "DISK_LIMIT"
"""The error code for inputs that take more disk than their job asked for."""
SECOND_NS = 1_000_000_000
LATEST_NS = 2**62
"""The time, in nanoseconds, from which on modification times are not kept: in the year 2116."""
RECORD = 10_240
"""How many bytes are read from an archive at a time: one tar record."""

# Long names and extended headers are read into memory whole by tarfile.
_MAX_HEADER = 64 * 1024
# A member's header and padding, its extended header with a name of the greatest length, and theirs.
_BLOCKS_A_MEMBER = 8
_BAD_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that names must not contain: control and format characters, surrogates, and line separators."""
_HEADERS = {
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
}


class ArchiveLimits(NamedTuple):
    """The limits on the content of one archive."""

    members: int = 100_000
    """How many files and directories an archive may have."""
    total_bytes: int = 1024 * MIB
    """How many bytes its files may have together, unpacked."""
    name_length: int = 1024
    """How many bytes of UTF-8 a member's name may have. Each part of a name may have 255, as in file systems."""
    depth: int = 64
    """How many parts a member's name may have: its directories and itself."""


class Allowance:
    """The bytes on disk that the inputs of one job may take together: at most `most_bytes`; None: no limit."""

    def __init__(self, most_bytes: int | None = None) -> None:
        self._most_bytes = most_bytes
        self._taken = 0

    def take(self, size: int) -> None:
        """Count a new file of `size` bytes, in whole blocks, or a directory. Raise Rejected (DISK_LIMIT) if the job may not have that."""
        self._taken += max(1, -(-size // BLOCK)) * BLOCK
        if self._most_bytes is not None and self._taken > self._most_bytes:
            raise Rejected(
                DISK_LIMIT, f"the inputs take more than the {self._most_bytes:,} bytes of disk asked for"
            )


# --- packing -----------------------------------------------------------------------------------------------------


class ProgramFile(PosixPath):
    """The path of a file that gets execute permission in an archive, whatever its mode."""


class Target(Protocol):
    """Where an archive is written to."""

    def write(self, data: bytes, /) -> int:
        """Append `data`, and return the number of bytes written."""

    def tell(self) -> int:
        """Return how many bytes were written."""


def pack(
    members: Mapping[str, Path | bytes | BinaryIO],
    target: Target,
    max_bytes: int = MAX_ARCHIVE,
    limits: ArchiveLimits | None = None,
) -> int:
    """Write a tar.gz of these members to `target`; return the number of bytes of their contents. The call blocks.

    Keys are names in the archive; values are paths on disk, opened files, or the bytes themselves. Names are sorted. Of files given by their paths
    the modification times are kept; other times, owners and groups are zero. Of the mode only the executable bit is kept. A path to a directory packs
    the directory without its content.

    Raise Rejected, with the name of the member, if `unpack` would refuse it, or if it is neither a file nor a directory. Raise Rejected
    also when the archive grows over `max_bytes`.
    """
    with gzip.GzipFile(
        filename="", mode="wb", compresslevel=1, fileobj=cast("IO[bytes]", target), mtime=0
    ) as stream:
        packer = _Packer(stream, target, max_bytes, limits or ArchiveLimits())
        for name in sorted(members):
            packer.add(name, members[name])
        stream.write(bytes(2 * tarfile.BLOCKSIZE))
    packer.check()
    return packer.total


class _Packer:
    """Writes one archive, under the limits that apply to unpacking."""

    def __init__(self, stream: gzip.GzipFile, target: Target, max_bytes: int, limits: ArchiveLimits) -> None:
        self._stream = stream
        self._target = target
        self._max_bytes = max_bytes
        self._names = _Names(limits)
        self._limits = limits
        self.total = 0

    def add(self, name: str, source: Path | bytes | BinaryIO) -> None:
        if isinstance(source, bytes):
            self._count(name, len(source))
            self._write(_header(name, len(source), executable=False) + source + _padding(len(source)))
        elif not isinstance(source, Path):
            self._add_opened(name, source)
        elif source.is_dir():
            self._names.add(name, is_directory=True)
            self._write(_header(name, 0, executable=True, kind=tarfile.DIRTYPE))
        else:
            self._add_file(name, source)

    def _count(self, name: str, size: int) -> None:
        self._names.add(name)
        if size > self._limits.total_bytes - self.total:
            raise _too_large(name, self._limits)
        self.total += size

    def check(self) -> None:
        if self._target.tell() > self._max_bytes:
            raise Rejected(
                "SANDBOX_TOO_LARGE",
                f"the files take more than {self._max_bytes} bytes even when packed",
                "put large files where they can be fetched by themselves",
            )

    def _add_file(self, name: str, source: Path) -> None:
        try:
            # Not blocking, should the name be a fifo's.
            descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            raise _refused(name, f"cannot be read: {error.strerror}") from error
        with os.fdopen(descriptor, "rb") as file:
            self._add_opened(name, file, program=isinstance(source, ProgramFile), timed=True)

    def _add_opened(self, name: str, file: BinaryIO, *, program: bool = False, timed: bool = False) -> None:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise _refused(name, "is not a regular file")
        self._count(name, found.st_size)
        runs = program or bool(found.st_mode & stat.S_IXUSR)
        modified_ns = found.st_mtime_ns if timed else 0
        self._write(_header(name, found.st_size, executable=runs, modified_ns=modified_ns))
        self._copy(file, found.st_size, name)
        self._write(_padding(found.st_size))

    def _copy(self, file: BinaryIO, size: int, name: str) -> None:
        left = size
        while left:
            chunk = file.read(min(CHUNK, left))
            if not chunk:
                raise _refused(name, "became shorter while it was packed")
            left -= len(chunk)
            self._write(chunk)

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self.check()


class _Names:
    """The names of an archive's members so far, none of which breaks a limit or conflicts with another."""

    def __init__(self, limits: ArchiveLimits) -> None:
        self._limits = limits
        self._count = 0
        self._files: set[str] = set()
        self._directories: set[str] = set()

    def add(self, name: str, *, is_directory: bool = False) -> None:
        """Add a name. Raise Rejected with the reason if it is unsafe, over a limit, or in conflict with another name."""
        if reason := bad_name(name, self._limits):
            raise _refused(name, reason)
        self._count += 1
        if self._count > self._limits.members:
            raise _too_many(name, self._limits)
        plain = name.rstrip("/")
        above = [plain[:at] for at, letter in enumerate(plain) if letter == "/"]
        if plain in self._files or not self._files.isdisjoint(above):
            raise _refused(name, _THERE)
        self._directories.update(above)
        if is_directory:
            self._directories.add(plain)
        elif plain in self._directories or plain != name:
            raise _refused(name, _THERE)
        else:
            self._files.add(plain)


def _header(
    name: str, size: int, *, executable: bool, kind: bytes = tarfile.REGTYPE, modified_ns: int = 0
) -> bytes:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = size
    info.mode = 0o755 if executable else 0o644
    if 0 < modified_ns < LATEST_NS:
        seconds, rest = divmod(modified_ns, SECOND_NS)
        info.mtime = seconds
        # A plain header has whole seconds alone.
        info.pax_headers = {"mtime": f"{seconds}.{rest:09d}"} if rest else {}
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


# --- unpacking ---------------------------------------------------------------------------------------------------


def unpack(
    archive: Path | bytes | BinaryIO,
    dest: Path,
    limits: ArchiveLimits | None = None,
    allowance: Allowance | None = None,
) -> int:
    """Unpack a tar.gz into the directory `dest`; return the number of bytes of its files. The call blocks.

    `allowance` is the disk that this and further archives may take together; None: no limit. Raise Rejected, with the name
    of the member, at the first one that is unsafe, over a limit, or twice in the archive; a file of an earlier archive is replaced.
    Members unpacked before it remain, so the caller should discard `dest`. Raise Rejected (DISK_LIMIT) before a member that is
    over the allowance is written. Raise Unavailable if the disk fails.
    """
    within = limits or ArchiveLimits()
    opened = archive.open("rb") if isinstance(archive, Path) else archive
    source = io.BytesIO(opened) if isinstance(opened, bytes) else opened
    with source, _readable():
        plain = _Bounded(gzip.GzipFile(fileobj=source, mode="rb"), within)
        with tarfile.open(fileobj=plain, mode="r|", bufsize=RECORD, tarinfo=_Header) as tar:  # type: ignore[call-overload]
            total = _unpack_members(tar, dest, within, allowance or Allowance())
        while plain.read(RECORD):
            pass  # to the checksum at the end
        return total


def _unpack_members(tar: tarfile.TarFile, dest: Path, limits: ArchiveLimits, allowance: Allowance) -> int:
    total = 0
    files = set[str]()
    for count, member in enumerate(tar, 1):
        # Kept by tarfile for who wants to go back, and of headers for all members for who wants to read them.
        tar.members, tar.pax_headers = [], {}  # type: ignore[attr-defined]
        if count > limits.members:
            raise _too_many(member.name, limits)
        _check_member(member, dest, limits)
        if member.size > limits.total_bytes - total:
            raise _too_large(member.name, limits)
        allowance.take(member.size)
        if member.name in files:
            raise _refused(member.name, _THERE)
        files |= {member.name} if member.isreg() else set()
        total += _unpack_member(tar, member, dest)
    return total


def _check_member(member: tarfile.TarInfo, dest: Path, limits: ArchiveLimits) -> None:
    if reason := _bad_kind(member) or bad_name(member.name, limits):
        raise _refused(member.name, reason)
    if not hasattr(tarfile, "data_filter"):
        return  # Python 3.11 has it from 3.11.4 on
    try:
        # Says all of this once more, and what Python's authors learn of later.
        tarfile.data_filter(member, str(dest))
    except tarfile.FilterError as error:
        raise _refused(member.name, str(error)) from error


def _bad_kind(member: tarfile.TarInfo) -> str | None:
    if member.issym() or member.islnk():
        return "is a link, and a sandbox carries files and directories only"
    if member.issparse() or not (member.isreg() or member.isdir()):
        return "is neither a regular file nor a directory"
    return "has a negative size" if member.size < 0 else None


def bad_name(name: str, limits: ArchiveLimits) -> str | None:
    """Return why a member may not have this name, as the end of a sentence; None if it may."""
    parts = name.rstrip("/").split("/")
    if name.startswith("/"):
        return "has an absolute name"
    if ".." in parts:
        return "climbs out of its directory by «..»"
    if any(unicodedata.category(letter) in _BAD_CATEGORIES for letter in name):
        return "has control characters or undecodable bytes in its name"
    if len(name.encode()) > limits.name_length or any(len(part.encode()) > 255 for part in parts):
        return f"has a name longer than {limits.name_length} bytes, or than 255 in one part"
    if len(parts) > limits.depth:
        return f"lies deeper than {limits.depth} directories"
    return "has an empty part in its name" if "" in parts or "." in parts else None


def _unpack_member(tar: tarfile.TarFile, member: tarfile.TarInfo, dest: Path) -> int:
    path = dest / member.name
    try:
        if member.isdir():
            path.mkdir(mode=0o755, parents=True, exist_ok=True)
            return 0
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if path.is_file() and not path.is_symlink():
            path.unlink()
        mode = 0o755 if member.mode & stat.S_IXUSR else 0o644
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    except (FileExistsError, NotADirectoryError) as error:
        raise _refused(member.name, _THERE) from error
    with os.fdopen(descriptor, "wb") as file:
        size = _copy_member(tar, member, file)
        file.flush()
        if modified_ns := _modified_ns(member):
            os.utime(descriptor, ns=(modified_ns, modified_ns))
        return size


def _modified_ns(member: tarfile.TarInfo) -> int:
    """Return the modification time of a member in nanoseconds; 0 if it states none that can be set."""
    seconds, _, rest = member.pax_headers.get("mtime", str(int(member.mtime))).partition(".")
    if not ((said := f"{seconds}{rest}").isascii() and said.isdecimal() and len(seconds) <= 12):
        return 0
    found = int(seconds) * SECOND_NS + int(rest[:9].ljust(9, "0"))
    return found if found < LATEST_NS else 0


def _copy_member(tar: tarfile.TarFile, member: tarfile.TarInfo, file: BinaryIO) -> int:
    content = tar.extractfile(member)
    size = 0
    while content and (chunk := content.read(CHUNK)):
        size += len(chunk)
        file.write(chunk)
    if size != member.size:
        raise _refused(member.name, f"holds {size} of its {member.size} bytes")
    return size


class _Header(tarfile.TarInfo):
    """A tar header for reading. It refuses large extended headers before tarfile reads them into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        info = super().frombuf(buf, encoding, errors)
        if info.size < 0 or (info.type in _HEADERS and info.size > _MAX_HEADER):
            raise _refused(info.name, f"has an extended header or a size of {info.size} bytes")
        return info


class _Bounded:
    """A decompressed stream that raises Rejected once more bytes are read than the limits allow."""

    def __init__(self, stream: gzip.GzipFile, limits: ArchiveLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._ceiling = limits.total_bytes + limits.members * _BLOCKS_A_MEMBER * tarfile.BLOCKSIZE + RECORD
        self._count = 0

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._count += len(data)
        if self._count > self._ceiling:
            raise Rejected("SANDBOX_REFUSED", f"the archive holds more than {self._limits.total_bytes} bytes")
        return data


@contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, RecursionError, ValueError) as error:
        text = f"not a tar.gz archive that can be read: {str(error) or type(error).__name__}"
        raise Rejected("SANDBOX_REFUSED", text, "pack it again") from error
    except OSError as error:
        raise Unavailable(f"the sandbox could not be unpacked: {error}") from error


_THERE = "is there already"


def _too_many(name: str, limits: ArchiveLimits) -> Rejected:
    return _refused(name, f"is one more than the {limits.members} members allowed")


def _too_large(name: str, limits: ArchiveLimits) -> Rejected:
    return _refused(name, f"brings the archive over {limits.total_bytes} bytes")


def _refused(name: str, reason: str) -> Rejected:
    return Rejected("SANDBOX_REFUSED", f"the archive's member {name[:200]!r} {reason}")
