"""Unpacks the modules of the job agent on a node, once for all pilots of one account, and runs the agent from there.

They are in a directory that is named by the digest of the file's content, below a cache that only this account can read:
`wms-agent-UID` in `WMS_AGENT_CACHE`, else in `/var/tmp`, else in `TMPDIR`. The first pilot unpacks
while others wait for its lock; if it dies, the next one goes on. Each start looks at the checksum of every file, so that what
was lost or damaged meanwhile is written anew. A running agent holds a lock on the directory: neither a newer agent nor
systemd-tmpfiles removes it.
"""

import contextlib
import fcntl
import os
import runpy
import secrets
import shutil
import stat
import sys
import tarfile
import tempfile
import time
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

CONTENT = "content.tar.xz"
"""The name of the archive of modules in the file. Its members are below `common/`, or below `cp311/` for Python 3.11 alone."""
LISTED = ".files"
"""The name of the file, written last, that lists the checksum and the path of each unpacked file."""
CACHE_VARIABLE = "WMS_AGENT_CACHE"
UNUSED_SECONDS = 14 * 86_400
"""Seconds without a start after which the modules of another file are removed."""
UNUSABLE = 75
"""The exit code where the modules can be unpacked nowhere."""


class UnpackError(Exception):
    """The modules cannot be unpacked in a directory. The text says which and why."""


def run_agent(archive: str, digest: str) -> None:
    """Unpack the modules of the file `archive`, whose content has this digest, and run the job agent in this process.

    If the modules can be unpacked nowhere, the process exits with code 75.
    """
    try:
        place, held = unpacked(Path(archive), digest, caches(os.environ))
    except UnpackError as error:
        sys.stderr.write(f"job_agent: the agent cannot be unpacked on this node: {error}\n")
        sys.exit(UNUSABLE)
    # The lock lasts as long as this process. Payloads do not inherit it.
    os.set_inheritable(held, False)
    sys.path[0] = str(place)
    for name in [each for each in sys.modules if each == "deploy" or each.startswith("deploy.")]:
        del sys.modules[name]
    runpy.run_module("services.job_agent", run_name="__main__", alter_sys=True)


def caches(environment: Mapping[str, str]) -> list[Path]:
    """Return the directories that may be used as the cache, the best first."""
    given = environment.get(CACHE_VARIABLE)
    bases = [given] if given else dict.fromkeys(["/var/tmp", tempfile.gettempdir()])
    return [Path(base, f"wms-agent-{os.getuid()}").absolute() for base in bases]


def unpacked(archive: Path, digest: str, roots: list[Path]) -> tuple[Path, int]:
    """Return the directory with the modules, in the first usable one of `roots`, and the descriptor of a lock on it.

    Raise UnpackError if none can be used.
    """
    faults = []
    for root in roots:
        try:
            return _unpacked_in(archive, f"{digest[:32]}-{_version()}", root)
        except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, UnpackError) as error:
            faults.append(f"{root}: {error}")
    raise UnpackError("; ".join(faults))


def _version() -> str:
    return f"cp{sys.version_info.major}{sys.version_info.minor}"


def _unpacked_in(archive: Path, name: str, root: Path) -> tuple[Path, int]:
    _claim(root)
    place = root / name
    place.mkdir(mode=0o700, exist_ok=True)
    held = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(held, fcntl.LOCK_SH)
    os.utime(place)
    if not _is_whole(place):
        with _locked(root / ".lock"):
            if not _is_whole(place):
                _write(archive, place)
                _sweep(root, name)
    return place, held


def _claim(root: Path) -> None:
    """Make the cache, closed to other users. Raise UnpackError if it is another user's, or nothing may be executed there."""
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise UnpackError("it is not a directory of this account")
    if found.st_mode & 0o077:
        raise UnpackError("other users may read or write there")
    if os.statvfs(root).f_flag & os.ST_NOEXEC:
        raise UnpackError("nothing may be executed there")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_whole(place: Path) -> bool:
    """Return whether all unpacked files are there with their checksums."""
    try:
        lines = (place / LISTED).read_text("utf-8").splitlines()
        pairs = [line.split(" ", 1) for line in lines]
        return all(zlib.crc32((place / name).read_bytes()) == int(said) for said, name in pairs)
    except (OSError, ValueError):
        return False


def _write(archive: Path, place: Path) -> None:
    """Write all files that are missing or damaged, each by a rename, and then their list."""
    listed = []
    with (
        zipfile.ZipFile(archive) as file,
        file.open(CONTENT) as content,
        tarfile.open(fileobj=content, mode="r|xz") as members,
    ):
        for member in members:
            kind, _, name = member.name.partition("/")
            if kind not in ("common", _version()):
                continue
            reader = members.extractfile(member)
            data = reader.read() if reader else b""
            listed.append(f"{zlib.crc32(data)} {name}\n")
            _put(place / name, data)
    _put(place / LISTED, "".join(sorted(listed)).encode())


def _put(path: Path, data: bytes) -> None:
    """Write a file at once, under this name or not at all. One with the same bytes is left as it is."""
    with contextlib.suppress(OSError):
        if path.read_bytes() == data:
            return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        aside.write_bytes(data)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)


def _sweep(root: Path, name: str) -> None:
    """Remove the modules of other files that nobody has started for a while and no agent uses."""
    oldest = time.time() - UNUSED_SECONDS  # noqa: TID251 - it runs before wms can be imported
    for place in root.iterdir():
        if place.name == name or not place.is_dir() or place.stat().st_mtime > oldest:
            continue
        held = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(place, ignore_errors=True)
        except OSError:
            continue  # an agent runs from there
        finally:
            os.close(held)
