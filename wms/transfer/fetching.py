"""Fetches one input file of a job from its replicas, one after the other. Transfers are resumed, retried and verified.

The file appears completely or not at all.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from wms.backoff import delays
from wms.errors import Rejected, Unavailable, WmsError
from wms.jobdesc.staged_file import InputFile
from wms.transfer.access_rules import REFUSED
from wms.transfer.checksum import Checksum, checksum_of
from wms.transfer.file_url import FileUrl
from wms.transfer.movers import Movers
from wms.transfer.part_file import PartFile
from wms.transfer.replica_resolver import ReplicaResolver, resolved
from wms.transfer.transfer_limits import TOO_LARGE, Meter, TransferLimits

CORRUPT: Final = "FILE_CORRUPT"
"""The error code for a file whose size or checksum is not what it should be."""
UNAVAILABLE: Final = "FILE_UNAVAILABLE"
"""The error code for a file that could not be fetched from any replica."""
_LONGEST_PAUSE = 60.0
_FAULTS_SHOWN = 5


class Transferred(msgspec.Struct, frozen=True):
    """One file that was fetched or delivered: its bytes, the seconds of the successful try, and the storage host at the other end."""

    name: str
    size: int
    seconds: float
    host: str


class Fetcher:
    """Fetches input files of one job under one set of limits. `on_bytes` is called with the number of bytes as they arrive.

    Replicas on `first_hosts` are tried first, in this order.
    """

    def __init__(
        self,
        movers: Movers,
        catalogue: ReplicaResolver,
        limits: TransferLimits,
        rng: Random,
        on_bytes: Callable[[int], None] = lambda _: None,
        *,
        first_hosts: Sequence[str] = (),
    ) -> None:
        self._places = {host: place for place, host in reversed(list(enumerate(first_hosts)))}
        self._movers = movers
        self._catalogue = catalogue
        self._limits = limits
        self._rng = rng
        self._on_bytes = on_bytes

    async def fetch(self, wanted: InputFile, into: Path, most_bytes: int) -> Transferred:
        """Fetch a file of at most `most_bytes` bytes to the path `into`, which must not exist. After a failure there is no file at `into`.

        Raise Rejected with a code: FILE_CORRUPT if a replica had a wrong size or checksum, URL_REFUSED if the rules exclude all replicas, else
        FILE_UNAVAILABLE. Raise LocalDiskError if the node's disk fails.
        """
        part = PartFile(into.with_name(f".{into.name[:100]}.part"), is_verified=bool(wanted.checksum))
        search = _Search(wanted)
        try:
            async with asyncio.timeout(self._limits.file_seconds):
                return await self._search(search, part, into, most_bytes)
        except TimeoutError:
            search.faults["time"] = Unavailable(f"not there within {self._limits.file_seconds:g} s")
            raise search.failure() from None
        finally:
            part.discard()

    async def _search(self, search: "_Search", part: PartFile, into: Path, most_bytes: int) -> Transferred:
        """Try each replica once. Then, after pauses, try those again whose servers failed, until one gives the file."""
        pauses = delays(self._limits.pause_seconds, _LONGEST_PAUSE, 2.0, self._rng.random)
        for attempt in range(self._limits.tries):
            if attempt:
                await asyncio.sleep(next(pauses))
            if attempt == 0 or not search.urls:
                await self._resolve(search)
            for url in list(search.urls):
                if found := await self._try(search, url, part, into, most_bytes):
                    return found
            if not search.urls and not search.is_open:
                break
        raise search.failure()

    async def _resolve(self, search: "_Search") -> None:
        try:
            found = await resolved(search.wanted.sources, self._catalogue)
            search.urls = sorted(found, key=lambda url: self._places.get(_host(url), len(self._places)))
            search.is_open = False
        except Rejected as error:
            search.faults["catalogue"] = error
            search.is_open = False
        except Unavailable as error:
            search.faults["catalogue"] = error
            search.is_open = True

    async def _try(
        self, search: "_Search", url: str, part: PartFile, into: Path, most_bytes: int
    ) -> Transferred | None:
        """Try one replica. If it does not give the file, store the fault in `search` and return None."""
        meter = Meter(self._limits, most_bytes, self._on_bytes)
        began = time.monotonic()
        try:
            place = FileUrl.parse(url)
            size = await self._arrived(search.wanted, place, part, meter)
        except Rejected as error:
            part.discard()
            search.refuse(url, error)
        except Unavailable as error:
            search.faults[url] = error
        else:
            await asyncio.to_thread(_keep, search.wanted, part, into)
            return Transferred(search.wanted.name, size, time.monotonic() - began, place.host)
        return None

    async def _arrived(self, wanted: InputFile, place: FileUrl, part: PartFile, meter: Meter) -> int:
        """Fetch from one replica, verify the file, and return its size in bytes.

        If it does not fit bytes that came from another replica, fetch the whole file once more.
        """
        mover = self._movers.mover(place)
        try:
            await mover.fetch(place, part, meter)
            return await asyncio.to_thread(_verify, wanted, part)
        except _UnfitPartsError:
            part.discard()
            await mover.fetch(place, part, meter)
            return await asyncio.to_thread(_verify, wanted, part)


def _host(url: str) -> str:
    try:
        return FileUrl.parse(url).host.casefold()
    except Rejected:
        return ""  # it is tried, and refused, in its turn


class _UnfitPartsError(Exception):
    """Bytes that came from several replicas do not make up one file."""


class _Search:
    """The search for one file: the replicas that may still give it, and what was wrong with the others."""

    def __init__(self, wanted: InputFile) -> None:
        self.wanted = wanted
        self.urls: list[str] = []
        self.is_open = False
        """Whether the catalogue of replicas did not answer, so that it may be asked again."""
        self.faults: dict[str, WmsError] = {}

    def refuse(self, url: str, error: Rejected) -> None:
        """Store why a replica cannot give the file, so that it is not tried again."""
        self.faults[url] = error
        self.urls.remove(url)

    def failure(self) -> Rejected:
        """Return, not raise, a Rejected with the fault of each replica."""
        faults = list(self.faults.values())
        codes = {each.code if isinstance(each, Rejected) else "" for each in faults}
        code = UNAVAILABLE
        if codes & {CORRUPT, TOO_LARGE}:
            code = CORRUPT
        elif codes == {REFUSED}:
            code = REFUSED
        told = [_words(each) for each in faults[:_FAULTS_SHOWN]]
        more = [f"and {len(faults) - len(told)} more"] if len(faults) > len(told) else []
        return Rejected(code, f"{self.wanted.name}: {'; '.join(told + more)}")


def _words(error: WmsError) -> str:
    return error.message if isinstance(error, Rejected | Unavailable) else str(error)


def _verify(wanted: InputFile, part: PartFile) -> int:
    """Verify the size and the checksum of the fetched file, and return the size in bytes. The call blocks.

    Raise Unavailable if a part of it is missing, Rejected (FILE_CORRUPT) if size or checksum is wrong. Raise _UnfitPartsError instead if bytes came
    from several replicas, which may be the cause.
    """
    size = part.size
    if wanted.size is not None and size < wanted.size:
        part.discard()  # the storage says that there is no more, so that nothing can go on from there
        raise Unavailable(f"{size:,} bytes of {wanted.size:,} came")
    if wanted.size is not None and size > wanted.size:
        if part.is_mixed:
            raise _UnfitPartsError
        raise Rejected(CORRUPT, f"it has {size:,} bytes, not {wanted.size:,}")
    if wanted.checksum:
        _verify_checksum(Checksum.parse(wanted.checksum), part)
    return size


def _verify_checksum(said: Checksum, part: PartFile) -> None:
    if not part.path.exists():
        part.path.touch(0o600)
    found = checksum_of(part.path, said.algorithm)
    if found == said:
        return
    if part.is_mixed:
        raise _UnfitPartsError
    raise Rejected(CORRUPT, f"it has the checksum {found}, not {said}")


def _keep(wanted: InputFile, part: PartFile, into: Path) -> None:
    """Give the fetched file its final name and mode. The call blocks."""
    if not part.path.exists():
        part.path.touch(0o600)
    part.path.chmod(0o755 if wanted.executable else 0o644)
    part.path.rename(into)
