"""`wms record`: writes down what jobs asked for and how long they ran, for `wms simulate`."""

from pathlib import Path
from typing import TYPE_CHECKING

from wms.cli.options import USUAL, Common
from wms.cli.printing import show, show_json
from wms.cli.session import NOT_ALLOWED, OK, with_database

if TYPE_CHECKING:
    from wms.db.database import Database

JOBS_AT_ONCE = 5_000


def record(file: Path, /, *, common: Common = USUAL) -> int:
    """Write down jobs that ran, to simulate them.

    What they asked for, how long they ran, and what sites offer: a line of JSON each. Jobs whose last attempt has begun and ended are in it. It holds no programs and no files, but names of owners. Reads the database, as
    operators may.

    For example:
      wms record november.jsonl
      wms simulate november.jsonl --scenario default --scenario half-the-slots.toml
    """

    async def work(db: "Database") -> int:
        jobs, elements = await write(db, file)
        show_json({"jobs": jobs, "elements": elements}) if common.json else show(
            f"{jobs:,} jobs and {elements:,} computing elements in {file}"
        )
        return OK if jobs else NOT_ALLOWED

    return with_database(common, work)


async def write(db: "Database", file: Path) -> tuple[int, int]:
    """Write a recording; return of how many jobs and computing elements."""
    import msgspec

    from wms.db import ad, recording
    from wms.errors import Rejected
    from wms.simulation.recording import RecordedElement

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
