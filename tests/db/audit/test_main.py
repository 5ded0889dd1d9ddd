"""The command of the audit."""

from typing import Any

import msgspec

from tests.db.audit.test_auditor import run
from tests.services.world import world


async def test_command_says_by_its_exit_code_how_it_went(lived: str, database: str) -> None:
    code, text = run(lived)
    assert code == 0
    assert "all checks hold" in text
    async with world(database) as one:
        (job_id,) = await one.submitted()
        await one.sql("update job set state = 'Staging' where job_id = $1", job_id)
    code, text = run(database, "--json")
    assert code == 1
    report: Any = msgspec.json.decode(text)
    assert [check["name"] for check in report["checks"] if check["violations"]] == [
        "every job is where its history ends"
    ]
    code, text = run("postgresql://127.0.0.1:1/none")
    assert code == 75
    assert "does not answer" in text
