"""Writes a recording of this system, which a simulation can read: its jobs' requirements and run times, and its sites' ads."""

from pathlib import Path

import msgspec

from wms.db import ad, recording
from wms.db.database import Database
from wms.errors import Rejected
from wms.simulation.recording import RecordedElement

JOBS_AT_ONCE = 5_000


async def write(db: Database, file: Path) -> tuple[int, int]:
    """Write a recording of all jobs that ran, and of all valid ads, to the file. Return how many jobs and computing elements it has.

    Raise Rejected if the file cannot be written.
    """
    encoder = msgspec.json.Encoder()
    jobs = last = 0
    try:
        with file.open("wb") as out:
            async with db.transaction() as tx:
                elements = await ad.fresh(tx)
            out.write(encoder.encode_lines([RecordedElement(element=each) for each in elements]))
            while True:
                async with db.transaction() as tx:
                    last, found = await recording.jobs_after(tx, last, JOBS_AT_ONCE)
                if not found:
                    return jobs, len(elements)
                out.write(encoder.encode_lines(found))
                jobs += len(found)
    except OSError as error:
        raise Rejected("BAD_FILE", f"{file}: {error.strerror}", "name a file that can be written") from None
