"""Jobs on this machine, counted by the marks of their processes."""

import subprocess
import sys

from services.advertiser.processes import LocalJobCounts, environments, jobs_of
from tests.waiting import eventually


def test_jobs_are_counted_by_the_marks_of_their_processes():
    found = [
        {"WMS_JOB_ID": "1", "WMS_PILOT": "p-1"},
        {"WMS_JOB_ID": "1", "WMS_PILOT": "p-1", "MORE": "x"},
        {"WMS_JOB_ID": "2", "WMS_PILOT": "p-1"},
        {"WMS_PILOT": "p-1"},
        {"WMS_PILOT": "p-2"},
        {},
    ]
    assert jobs_of(found) == LocalJobCounts(running=2, submitting=1)
    placed = [
        {"WMS_PILOT": "p-1", "WMS_PILOT_ELEMENT": "here/other"},
        {"WMS_PILOT": "p-2", "WMS_PILOT_ELEMENT": "here/local"},
        {"WMS_PILOT": "p-3", "WMS_PILOT_ELEMENT": "here/local"},
        {"WMS_PILOT": "p-2", "WMS_JOB_ID": "3"},
        {"WMS_JOB_ID": "4"},
    ]
    assert jobs_of([*found, *placed], "here/local") == LocalJobCounts(running=2, submitting=1), (
        "of the jobs 3 and 4, the second of which says nothing, and of pilot 3"
    )


async def test_a_process_that_bears_a_job_is_seen():
    before = jobs_of(environments())
    wait = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    environment = {"WMS_JOB_ID": "987654321", "WMS_PILOT": "p-of-this-test"}
    with subprocess.Popen(wait, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert jobs_of(environments()).running == before.running + 1
        process.communicate()
    await eventually(lambda: jobs_of(environments()).running <= before.running)
