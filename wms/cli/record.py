"""`wms record`: writes a recording of the system's jobs and computing elements, which `wms simulate` reads."""

from pathlib import Path
from typing import TYPE_CHECKING

from wms.cli.options import USUAL, CommonOptions
from wms.cli.printing import show, show_json
from wms.cli.session import NOT_ALLOWED, OK, with_database

if TYPE_CHECKING:
    from wms.db.database import Database


def record(file: Path, /, *, common: CommonOptions = USUAL) -> int:
    """Write a recording of jobs that ran, to simulate them.

    The recording has the requirements and the run time of each job, and the ad of each computing element, as lines of JSON. Only jobs whose last attempt has begun and ended are recorded. The recording holds names of owners, but no programs and no files. The command reads the database, as operators may.

    For example:
      wms record november.jsonl
      wms simulate november.jsonl --scenario default --scenario half-the-slots.toml
    """

    async def work(db: "Database") -> int:
        from wms.replay.record import write

        jobs, elements = await write(db, file)
        show_json({"jobs": jobs, "elements": elements}) if common.json else show(
            f"{jobs:,} jobs and {elements:,} computing elements in {file}"
        )
        return OK if jobs else NOT_ALLOWED

    return with_database(common, work)
