"""Sandboxes, which are the input or output files of a job: packed and stored, fetched and unpacked."""

import asyncio
import contextlib
import functools
import io
import tempfile
from collections.abc import Mapping
from pathlib import Path

from wms.errors import Rejected
from wms.jobdesc.description import SandboxRef
from wms.transfer.archive import MIB, Allowance, ArchiveLimits, pack, unpack
from wms.transfer.store import Objects

# Up to here an archive is made in memory and put from there.
SMALL = 4 * MIB


async def upload(store: Objects, members: Mapping[str, Path | bytes]) -> SandboxRef:
    """Pack these members and store the archive; return its reference. Keys are names in the archive, values are paths or bytes.

    Raise Rejected for a member that cannot be packed or an archive over the store's limit, Unavailable if the store fails.
    """
    return await asyncio.to_thread(keep, store, members)


def keep(store: Objects, members: Mapping[str, Path | bytes]) -> SandboxRef:
    """Pack these members and store the archive; return its reference. The call blocks.

    Raise Rejected for a member that cannot be packed or an archive over the store's limit, Unavailable if the store fails.
    """
    if _size_of(members) <= SMALL:
        return store.keep(_packed(members))
    with tempfile.NamedTemporaryFile(suffix=".tar.gz") as file:
        pack(members, file, store.max_object)
        file.flush()
        return store.keep(Path(file.name))


async def download(
    store: Objects,
    sha256: str,
    dest: Path,
    limits: ArchiveLimits | None = None,
    *,
    size: int | None = None,
    allowance: Allowance | None = None,
) -> int:
    """Fetch a sandbox and unpack it into the directory `dest`; return the number of bytes of its files.

    `size` is the expected size of the archive in bytes. `allowance` is the disk that this and further sandboxes may take
    together; None: no limit. Raise Rejected if the sandbox does not exist, has another size, or is unsafe. Raise Unavailable if
    the store fails or the stored object is corrupt.
    """
    archive = dest.with_name(f".{dest.name}.{sha256[:12]}.tar.gz")
    try:
        await fetch_archive(store, sha256, archive, size)
        return await asyncio.to_thread(unpack, archive, dest, limits, allowance)
    finally:
        with contextlib.suppress(OSError):
            archive.unlink(missing_ok=True)


async def fetch_archive(store: Objects, sha256: str, to_path: Path, size: int | None = None) -> None:
    """Fetch a sandbox as it is to the path `to_path`. The parameters and errors are those of `download`."""
    found = await store.fetch(sha256, to_path)
    if size is not None and found.size != size:
        raise Rejected(
            "SANDBOX_SIZE",
            f"the sandbox {sha256[:12]} has {found.size:,} bytes, and its reference says {size:,}",
            "submit the job again",
        )


def _size_of(members: Mapping[str, Path | bytes]) -> int:
    size = 0
    for source in members.values():
        with contextlib.suppress(FileNotFoundError):
            size += len(source) if isinstance(source, bytes) else source.stat().st_size
    return size


def _packed(members: Mapping[str, Path | bytes]) -> bytes:
    return _of_nothing(tuple(members)) if not any(members.values()) else _archive(members)


@functools.lru_cache
def _of_nothing(names: tuple[str, ...]) -> bytes:
    """Return the archive of empty files with these names. It is cached, as very many jobs have empty outputs."""
    return _archive(dict.fromkeys(names, b""))


def _archive(members: Mapping[str, Path | bytes]) -> bytes:
    target = io.BytesIO()
    pack(members, target)
    return target.getvalue()
