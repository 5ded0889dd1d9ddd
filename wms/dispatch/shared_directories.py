"""Jobs that were sent directly to elements whose nodes share a file system with this machine: their leases and their ends."""

import asyncio
from pathlib import Path

from wms.dispatch.direct import LEASE, DirectEnd, end_in
from wms.dispatch.pilot_directories import Places
from wms.ids import PilotId


class SharedDirectories:
    """The part of a dispatcher that passes leases on and finds outputs, by the directories of its pilots."""

    _places: Places

    async def extend(self, pilot_id: PilotId, number: int, seconds: float) -> None:
        """Write the lease of a job beside it, whole or not at all."""
        await asyncio.to_thread(_write_lease, self._places.of(pilot_id), number, seconds)

    async def collect(self, pilot_id: PilotId) -> DirectEnd:
        """Return the job's directory, and its end as its script wrote it down."""
        return await asyncio.to_thread(end_in, self._places.of(pilot_id))


def _write_lease(place: Path, number: int, seconds: float) -> None:
    if place.is_dir():
        new = place / f"{LEASE}.new"
        new.write_text(f"{number} {max(0, int(seconds))}\n", "ascii")
        new.replace(place / LEASE)
