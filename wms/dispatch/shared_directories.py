"""Leases and ends of direct jobs at computing elements whose nodes share a file system with this machine."""

import asyncio
from pathlib import Path

from wms.dispatch.direct import LEASE, DirectEnd, end_in
from wms.dispatch.pilot_directories import Places
from wms.ids import PilotId


class SharedDirectories:
    """A mixin for dispatchers whose nodes share a file system with this machine. It handles direct jobs (jobs sent as batch jobs themselves).

    It writes renewed leases into the jobs' directories, and reads there how the jobs ended.
    """

    _places: Places

    async def extend(self, pilot_id: PilotId, number: int, seconds: float) -> None:
        """Write a renewed lease into a direct job's directory: the job may run for `seconds` seconds from now on.

        `number` must differ from renewal to renewal. If the job has no directory here, nothing happens.
        """
        await asyncio.to_thread(_write_lease, self._places.of(pilot_id), number, seconds)

    async def collect(self, pilot_id: PilotId) -> DirectEnd:
        """Return a direct job's directory, and how the job ended by the files that its script wrote there."""
        return await asyncio.to_thread(end_in, self._places.of(pilot_id))


def _write_lease(place: Path, number: int, seconds: float) -> None:
    if place.is_dir():
        new = place / f"{LEASE}.new"
        new.write_text(f"{number} {max(0, int(seconds))}\n", "ascii")
        new.replace(place / LEASE)
