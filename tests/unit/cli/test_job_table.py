"""Jobs as a table: sorted, and by chosen columns."""

from datetime import timedelta

import msgspec
import pytest

from tests.unit.cli.tables import JOB, SWEEP
from tests.unit.messages.examples import AT
from wms.cli import job_table
from wms.errors import Rejected


def test_jobs_are_sorted_by_a_column_and_shown_by_chosen_ones() -> None:
    younger = msgspec.structs.replace(JOB, job_id=8, name="a", submitted_at=AT + timedelta(hours=1))

    def names(sort: str) -> list[object]:
        how = job_table.look(["name,state", "ID"], sort)
        columns, rows = job_table.job_table([SWEEP, JOB, younger], how)
        assert [each.name for each in columns] == ["NAME", "STATE", "ID"]
        return [row[2] for row in rows]

    assert names("") == ["107126-207125", 1_207_126, 8]
    assert names("id") == [8, "107126-207125", 1_207_126]
    assert names("-name") == ["107126-207125", 1_207_126, 8]
    assert names("age")[0] == 8
    assert names("-age")[2] == 8
    assert names("site") == ["107126-207125", 1_207_126, 8]
    for name in ("state", "reason", "tries", "since", "group", "owner"):
        assert len(names(name)) == 3
    with pytest.raises(Rejected, match="no column size"):
        job_table.look(["size"], "")
