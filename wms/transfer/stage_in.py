"""Stage-in: fetches all input files of a job into its directory, several at a time, within the site's limits."""

import asyncio
from collections.abc import Coroutine, Iterable
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import msgspec

from wms.errors import Rejected
from wms.jobdesc.staged_file import InputFile
from wms.transfer.archive import ArchiveLimits, bad_name
from wms.transfer.fetching import UNAVAILABLE, Fetcher, Transferred
from wms.transfer.movers import Movers, TransferSettings
from wms.transfer.replica_resolver import ReplicaResolver, resolver
from wms.transfer.transfer_limits import TOO_LARGE, TransferLimits

T = TypeVar("T")


class TransferProgress(msgspec.Struct):
    """How far the transfers of one job's inputs or outputs are. It is updated while they run."""

    files: int = 0
    files_done: int = 0
    bytes_done: int = 0
    """Bytes moved so far. Bytes that were moved again after a fault count again."""
    bytes_total: int | None = None
    """Bytes of all files together; None while the size of one is unknown."""

    def __str__(self) -> str:
        total = "" if self.bytes_total is None else f" of {self.bytes_total:,}"
        return f"{self.files_done} of {self.files} files, {self.bytes_done:,}{total} bytes"


class TransferSite:
    """What the transfers of all jobs on one node share: limits, movers, and the catalogue of replicas."""

    def __init__(self, settings: TransferSettings, rng: Random) -> None:
        self.limits = settings.limits
        self.movers = Movers(settings)
        self.catalogue: ReplicaResolver = resolver(settings.catalogue)
        self.rng = rng
        self.first_hosts = tuple(settings.first_hosts)


class StageIn:
    """Fetches the input files of one job. `progress` tells how far that is."""

    def __init__(self, site: TransferSite, inputs: tuple[InputFile, ...], most_bytes: int | None) -> None:
        """Take the files to fetch. `most_bytes` is a limit on the size of all together, besides the site's own; None: only the site's limit."""
        self.progress = TransferProgress(files=len(inputs), bytes_total=_total(each.size for each in inputs))
        self._inputs = inputs
        self._limits = site.limits
        bounds = (site.limits.job_bytes, most_bytes)
        self._most_bytes = min(each for each in bounds if each is not None)
        self._fetcher = Fetcher(
            site.movers, site.catalogue, site.limits, site.rng, self._moved, first_hosts=site.first_hosts
        )

    async def run(self, work: Path) -> list[Transferred]:
        """Fetch all inputs into the directory `work`, and return one result for each, in order.

        Raise Rejected with the code of the first file that cannot be fetched: FILE_UNAVAILABLE, FILE_CORRUPT or URL_REFUSED, or another for an
        unusable name. Raise LocalDiskError if the node's disk fails. Files that were fetched before the failure stay.
        """
        known = sum(each.size or 0 for each in self._inputs)
        if known > self._most_bytes:
            raise Rejected(
                TOO_LARGE, f"the inputs have {known:,} bytes, and {self._most_bytes:,} may be fetched"
            )
        places = await asyncio.to_thread(_places, work, self._inputs)
        fetches = (self._fetch(each, place) for each, place in zip(self._inputs, places, strict=True))
        return await within(self._limits, fetches)

    async def _fetch(self, wanted: InputFile, place: Path) -> Transferred:
        most = self._most_bytes if wanted.size is None else wanted.size
        done = await self._fetcher.fetch(wanted, place, most)
        self.progress.files_done += 1
        return done

    def _moved(self, count: int) -> None:
        self.progress.bytes_done += count
        if self.progress.bytes_done > self._most_bytes:
            raise Rejected(TOO_LARGE, f"more than {self._most_bytes:,} bytes of inputs were fetched")


async def within(limits: TransferLimits, transfers: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all transfers, `limits.parallel` at a time, and return their results in order.

    The first failure cancels the others, and its error is raised. Raise Rejected (FILE_UNAVAILABLE) after `limits.job_seconds`.
    """
    turns = asyncio.Semaphore(limits.parallel)

    async def in_turn(transfer: Coroutine[Any, Any, T]) -> T:
        async with turns:
            return await transfer

    waiting = list(transfers)
    try:
        async with asyncio.timeout(limits.job_seconds), asyncio.TaskGroup() as group:
            tasks = [group.create_task(in_turn(each)) for each in waiting]
    except TimeoutError:
        raise Rejected(UNAVAILABLE, f"not all files were there within {limits.job_seconds:g} s") from None
    except ExceptionGroup as several:
        raise several.exceptions[0] from None
    finally:
        for each in waiting:
            each.close()  # of those that had no turn
    return [each.result() for each in tasks]


def _total(sizes: Iterable[int | None]) -> int | None:
    """Return the sum of the sizes; None if one of them is unknown."""
    known = list(sizes)
    return None if None in known else sum(each or 0 for each in known)


def _places(work: Path, inputs: tuple[InputFile, ...]) -> list[Path]:
    """Return the path of each input below `work`, and make missing directories. The call blocks. Raise Rejected for a path that cannot be used."""
    return [_place(work, each.name) for each in inputs]


def _place(work: Path, name: str) -> Path:
    if fault := bad_name(name, ArchiveLimits()):
        raise Rejected("BAD_INPUT_NAME", f"the input {name!r} {fault}")
    place = work / name
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise Rejected("BAD_INPUT_NAME", f"the input {name!r} lies below another file") from None
    if place.exists():
        raise Rejected("BAD_INPUT_NAME", f"the input {name!r} is in the input sandbox already")
    return place
