"""The interface of replica catalogues: for the logical name of a file (`lfn:...`) they list the URLs of its replicas."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from wms.bounds import Line
from wms.errors import Rejected, Unavailable
from wms.jobdesc.staged_file import Sources

LOGICAL = "lfn:"
"""The prefix of logical names."""
CATALOGUE_BYTES = 256 * 1024 * 1024

Catalogue = dict[Line, Sources]


class ReplicaResolver(Protocol):
    """A catalogue that knows the replicas of files with logical names."""

    async def replicas(self, names: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the URLs of each of these names that the catalogue has, in order of preference. Raise Unavailable if it does not answer."""


class NoReplicas:
    """A catalogue without any entry, for sites that have none."""

    async def replicas(self, names: Sequence[str]) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002 - the port's
        """Return an empty mapping: there is no catalogue."""
        return {}


class FileCatalogue:
    """A catalogue in a JSON file, `{"lfn:/data/a": ["https://...", ...]}`. The file is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int] = (0, -1)
        self._known: Catalogue = {}

    async def replicas(self, names: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the URLs of each of these names that the file has. Raise Unavailable if the file cannot be read."""
        known = await asyncio.to_thread(self._read)
        return {name: known[name] for name in names if name in known}

    def _read(self) -> Catalogue:
        try:
            found = self._path.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                if found.st_size > CATALOGUE_BYTES:
                    raise Unavailable(f"the catalogue {self._path} has over {CATALOGUE_BYTES:,} bytes")
                self._known = msgspec.json.decode(self._path.read_bytes(), type=Catalogue)
                self._stamp = stamp
        except (OSError, msgspec.MsgspecError) as error:
            raise Unavailable(f"the catalogue {self._path} cannot be read: {error}") from None
        return self._known


def resolver(catalogue: str) -> ReplicaResolver:
    """Return the catalogue in the JSON file at this path, or an empty one if the path is empty."""
    return FileCatalogue(Path(catalogue)) if catalogue else NoReplicas()


async def resolved(sources: Sequence[str], catalogue: ReplicaResolver) -> tuple[str, ...]:
    """Return the sources, with each logical name replaced by the URLs of its replicas. The order is kept, and duplicates are removed.

    Raise Rejected (NO_REPLICAS) if no URL is left, Unavailable if the catalogue does not answer.
    """
    names = [each for each in sources if each.casefold().startswith(LOGICAL)]
    if not names:
        return tuple(sources)
    known = await catalogue.replicas(names)
    found = [url for each in sources for url in (known.get(each, ()) if each in names else (each,))]
    if not found:
        raise Rejected("NO_REPLICAS", f"no replica of {', '.join(names)[:300]} is known at this site")
    return tuple(dict.fromkeys(found))
