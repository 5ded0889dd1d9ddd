"""What the shepherd is told to start, in the node's own system and in a container of an image."""

from pathlib import Path

from services.job_agent.payload.isolation import PayloadIsolation
from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.spare_workdirs import SpareWorkdirs
from services.job_agent.payload.spawn_order import contained, spawn_order
from services.job_agent.payload.workdir import SCRATCH, WORK, Workdir
from wms.ids import Epoch, JobId
from wms.jobdesc.description import JobDescription

JOB = JobDescription(
    executable="prog", arguments=("-x",), container="a", network="none", environment={"LANG": "C"}, stdin="in"
)


def test_an_order_has_the_directories_and_limits_of_its_job(tmp_path: Path) -> None:
    place = Workdir(tmp_path, JobId(7), Epoch(2), JOB, SpareWorkdirs(tmp_path, (WORK, SCRATCH)))
    order = spawn_order(
        JOB, place, PayloadLimits(file_bytes=9, living=2), "/bin/prog", {"A": "b"}, deadline=5.0
    )
    assert (order.argv, order.env, order.deadline) == (("/bin/prog", "-x"), {"A": "b"}, 5.0)
    assert (order.cwd, order.scratch) == (f"{tmp_path}/7.2/work", f"{tmp_path}/7.2/tmp")
    assert (order.rlimits, order.tasks, order.stdin) == ({"FSIZE": 9}, 8, f"{tmp_path}/7.2/work/in")
    assert not order.has_image


def test_a_container_has_no_variables_of_the_node_but_the_jobs_own(tmp_path: Path) -> None:
    place = Workdir(tmp_path, JobId(7), Epoch(2), JOB, SpareWorkdirs(tmp_path, (WORK, SCRATCH)))
    variables = {"PATH": "/node/bin", "LANG": "C", "USER": "root", "WMS_JOB_ID": "7"}
    order = spawn_order(JOB, place, PayloadLimits(), "prog", variables, deadline=None)
    found = contained(order, JOB, place, PayloadIsolation(hidden=("/h",), shm_mb=70))
    assert found.order.env == {"LANG": "C", "WMS_JOB_ID": "7"}
    assert (found.image, found.has_network, found.hidden, found.shm_mb) == ("a", False, ("/h",), 70)
