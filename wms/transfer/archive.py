"""Sandbox archives: tar.gz, packed so that equal content gives equal bytes, and unpacked as if by an enemy.

An archive carries regular files and directories and nothing else. Symbolic links are refused rather than confined: one
that points inside can be turned outside by a later member or by a second archive into the same directory, no job needs
them to carry files, and what cannot exist needs no rule. Packing stores the content a link leads to instead.

Equal bytes hold for one version of the compressor: another zlib may give another digest for the same content, which
costs a second object and nothing else.
"""

import gzip
import io
import os
import stat
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Self

import msgspec

from wms.errors import Rejected, Unavailable

MIB = 1024 * 1024
MAX_ARCHIVE = 100 * MIB
CHUNK = 256 * 1024
RECORD = 10_240

# Text of one letter is compressed a thousand times: the ratio is judged only where it begins to hurt.
_RATIO_FREE = 32 * MIB
# Long names and extended headers are read into memory whole by tarfile.
_MAX_HEADER = 64 * 1024
_HEADERS = {
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive may hold."""

    members: int = 10_000
    total_bytes: int = 1024 * MIB
    ratio: int = 200
    """Bytes out of one byte in, judged once 32 MiB have come out."""
    name_length: int = 1024
    """In bytes of UTF-8; 255 for each part of a name, as file systems have it."""
    depth: int = 64


# --- packing -----------------------------------------------------------------------------------------------------


def pack(members: Mapping[str, Path | bytes], target: IO[bytes], max_bytes: int = MAX_ARCHIVE) -> int:
    """Write a tar.gz of these members (name in the archive: the file on disk, or its bytes) and return their bytes.

    Names are sorted, times, owners and groups are zero, and of the mode only «executable» is kept. A path to a directory
    packs the directory alone. Raises Rejected, naming the member, for a bad name, for what is no file, and when the
    archive grows over `max_bytes`.
    """
    with gzip.GzipFile(filename="", mode="wb", compresslevel=1, fileobj=target, mtime=0) as stream:
        packer = _Packer(stream, target, max_bytes)
        total = sum(packer.add(name, members[name]) for name in sorted(members))
        stream.write(bytes(2 * tarfile.BLOCKSIZE))
    packer.check()
    return total


class _Packer:
    """An archive in the making, watched for its size."""

    def __init__(self, stream: gzip.GzipFile, target: IO[bytes], max_bytes: int) -> None:
        self._stream = stream
        self._target = target
        self._max_bytes = max_bytes

    def add(self, name: str, source: Path | bytes) -> int:
        if reason := bad_name(name, Limits()):
            raise _refused(name, reason)
        if isinstance(source, bytes):
            self._write(_header(name, len(source), executable=False) + source + _padding(len(source)))
            return len(source)
        if source.is_dir():
            self._write(_header(name, 0, executable=True, kind=tarfile.DIRTYPE))
            return 0
        return self._add_file(name, source)

    def check(self) -> None:
        if self._target.tell() > self._max_bytes:
            raise Rejected(
                "SANDBOX_TOO_LARGE",
                f"the files take more than {self._max_bytes} bytes even when packed",
                "put large files where they can be fetched by themselves",
            )

    def _add_file(self, name: str, source: Path) -> int:
        try:
            # Not blocking, should the name be a fifo's.
            descriptor = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError as error:
            raise _refused(name, f"cannot be read: {error.strerror}") from error
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise _refused(name, "is not a regular file")
            self._write(_header(name, found.st_size, executable=bool(found.st_mode & stat.S_IXUSR)))
            self._copy(file, found.st_size, name)
        self._write(_padding(found.st_size))
        return found.st_size

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


def _header(name: str, size: int, *, executable: bool, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = size
    info.mode = 0o755 if executable else 0o644
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


# --- unpacking ---------------------------------------------------------------------------------------------------


def unpack(archive: Path | bytes, dest: Path, limits: Limits | None = None) -> int:
    """Unpack a tar.gz into the directory `dest` and return the bytes it held; blocking.

    Raises Rejected, naming the member, at the first that is unsafe or over a limit, or whose file is there already; what
    was unpacked before it stays, so give `dest` up then.
    """
    within = limits or Limits()
    source = io.BytesIO(archive) if isinstance(archive, bytes) else archive.open("rb")
    with source, _readable():
        packed = _Counting(source)
        plain = _Bounded(gzip.GzipFile(fileobj=packed, mode="rb"), packed, within)
        with tarfile.open(fileobj=plain, mode="r|", bufsize=RECORD, tarinfo=_Header) as tar:  # type: ignore[call-overload]
            total = _unpack_members(tar, dest, within)
        while plain.read(RECORD):
            pass  # to the checksum at the end
        return total


def _unpack_members(tar: tarfile.TarFile, dest: Path, limits: Limits) -> int:
    total = 0
    for count, member in enumerate(tar, 1):
        if count > limits.members:
            raise _refused(member.name, f"is one more than the {limits.members} members allowed")
        _check_member(member, dest, limits)
        if member.size > limits.total_bytes - total:
            raise _refused(member.name, f"brings the archive over {limits.total_bytes} bytes")
        total += _unpack_member(tar, member, dest)
    return total


def _check_member(member: tarfile.TarInfo, dest: Path, limits: Limits) -> None:
    if reason := _bad_kind(member) or bad_name(member.name, limits):
        raise _refused(member.name, reason)
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


def bad_name(name: str, limits: Limits) -> str | None:
    """Return what is wrong with a member's name, or None."""
    parts = name.rstrip("/").split("/")
    if name.startswith("/"):
        return "has an absolute name"
    if ".." in parts:
        return "climbs out of its directory by «..»"
    if not name.isprintable():
        return "has control characters or undecodable bytes in its name"
    if len(name.encode()) > limits.name_length or any(len(part.encode()) > 255 for part in parts):
        return f"has a name longer than {limits.name_length} bytes, or than 255 in one part"
    if len(parts) > limits.depth:
        return f"lies deeper than {limits.depth} directories"
    return "has an empty part in its name" if "" in parts else None


def _unpack_member(tar: tarfile.TarFile, member: tarfile.TarInfo, dest: Path) -> int:
    path = dest / member.name
    try:
        if member.isdir():
            path.mkdir(mode=0o755, parents=True, exist_ok=True)
            return 0
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        mode = 0o755 if member.mode & stat.S_IXUSR else 0o644
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    except (FileExistsError, NotADirectoryError) as error:
        raise _refused(member.name, "is there already, from this or another archive") from error
    with os.fdopen(descriptor, "wb") as file:
        return _copy_member(tar, member, file)


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
    """A header that refuses, before tarfile reads it into memory, an extended header of any size it likes."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        info = super().frombuf(buf, encoding, errors)
        if info.size < 0 or (info.type in _HEADERS and info.size > _MAX_HEADER):
            raise _refused(info.name, f"has an extended header or a size of {info.size} bytes")
        return info


class _Counting(io.BufferedIOBase):
    """A file that counts what was read of it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        data = self._file.read(-1 if size is None else size)
        self.count += len(data)
        return data


class _Bounded:
    """What comes out of the compressor, counted against the limits as it comes."""

    def __init__(self, stream: gzip.GzipFile, packed: _Counting, limits: Limits) -> None:
        self._stream = stream
        self._packed = packed
        self._limits = limits
        # Each member has a header and padding, and may have an extended header.
        self._ceiling = limits.total_bytes + limits.members * 4 * tarfile.BLOCKSIZE + RECORD
        self._count = 0

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._count += len(data)
        if self._count > self._ceiling:
            raise Rejected("SANDBOX_REFUSED", f"the archive holds more than {self._limits.total_bytes} bytes")
        if self._count > _RATIO_FREE and self._count > self._limits.ratio * self._packed.count:
            raise Rejected(
                "SANDBOX_REFUSED",
                f"the archive gives more than {self._limits.ratio} bytes out of one: a bomb, or data to compress otherwise",
            )
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


def _refused(name: str, reason: str) -> Rejected:
    return Rejected("SANDBOX_REFUSED", f"the archive's member {name[:200]!r} {reason}")
