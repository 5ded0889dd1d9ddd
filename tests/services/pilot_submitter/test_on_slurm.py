"""Placed jobs on a real Slurm: in their reservations, by pilots that are bound to them, and as batch jobs of their own."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.contract.dispatch.grounds import ENVIRONMENT, SHELL
from tests.middleware import Sites
from tests.services.pilot_submitter.direct import DirectSubmitter, direct_job
from tests.services.pilot_submitter.elements import Site
from tests.services.pilot_submitter.placing import Submitter, order
from tests.waiting import eventually
from wms.dispatch.slurm import Cluster, SlurmDispatcher

pytestmark = [pytest.mark.testbed, pytest.mark.timeout(180)]


class RealSlurm:
    """A cluster with a reservation of one of its nodes."""

    def __init__(self, site: Site, sites: Sites) -> None:
        self._sites = sites
        self.reservation = f"wms-{uuid.uuid4().hex[:8]}"
        self.dispatcher = SlurmDispatcher(
            Cluster(str(sites.slurm("alpha"))), site.place / "pilots", SHELL, ENVIRONMENT
        )

    def run(self, *argv: str) -> str:
        return self._sites.run("alpha", *argv)

    def reserve(self, start: str = "now") -> None:
        self.run(
            *("scontrol", "create", "reservation", f"ReservationName={self.reservation}"),
            *(f"StartTime={start}", "Duration=10", "Users=root", "Nodes=alpha2"),
        )

    def job(self, name: str) -> dict[str, str]:
        """Return what Slurm shows of a job by its name."""
        number = self.run("squeue", "-h", "--states=all", "-o", "%i", f"--name={name}").split()[-1]
        said = self.run("scontrol", "-o", "show", "job", number).split()
        return dict(word.partition("=")[::2] for word in said)

    def clear(self) -> None:
        if self.reservation in self.run("scontrol", "-o", "show", "reservation"):
            for number in self.run("squeue", "-h", "-o", "%i", f"--reservation={self.reservation}").split():
                self.run("scancel", number)
            self.run("scontrol", "delete", f"ReservationName={self.reservation}")


@pytest.fixture
def slurm(site: Site, testbed: Sites) -> Iterator[RealSlurm]:
    made = RealSlurm(site, testbed)
    yield made
    made.clear()


async def test_a_direct_job_runs_in_its_reservation(site: Site, slurm: RealSlurm) -> None:
    slurm.reserve()
    submitter = DirectSubmitter(site, slurm.dispatcher)
    placement = {"reservation": slurm.reservation, "walltime_seconds": 240.0}
    job_id = await direct_job(site, "sh", "-c", "hostname; echo $SLURM_JOB_ID; sleep 3", placement=placement)
    await submitter.until(job_id, "Running")
    (row,) = await site.world.sql("select pilot_id, state from placement")
    said = slurm.job(row["pilot_id"])
    assert (said["Reservation"], said["NodeList"], said["TimeLimit"]) == (
        slurm.reservation,
        "alpha2",
        "00:04:00",
    )
    await submitter.until(job_id, "Done")
    assert await submitter.last(job_id) == ("Ended", "DONE")
    await submitter.audited()


async def test_a_direct_job_is_killed(site: Site, slurm: RealSlurm) -> None:
    submitter = DirectSubmitter(site, slurm.dispatcher)
    job_id = await direct_job(site, "sleep", "600")
    await submitter.until(job_id, "Running")
    (row,) = await site.world.sql("select pilot_id from placement")
    await site.world.order("kill", job_id)
    await submitter.until(job_id, "Killed")
    assert slurm.job(row["pilot_id"])["JobState"] in ("CANCELLED", "FAILED", "COMPLETING")
    await submitter.audited()


async def test_a_direct_job_over_its_time_is_failed_for_it(site: Site, slurm: RealSlurm) -> None:
    submitter = DirectSubmitter(site, slurm.dispatcher)
    job_id = await direct_job(site, "sleep", "600", placement={"walltime_seconds": 60.0}, max_attempts=1)
    await submitter.until(job_id, "Running")
    await eventually(lambda: ended(submitter, job_id), within=120)
    (attempt,) = await site.world.attempts(job_id)
    assert (attempt["outcome"], attempt["reason"]) == ("failed", "WALL_LIMIT")
    await submitter.audited()


async def ended(submitter: DirectSubmitter, job_id: int) -> bool:
    await submitter.round()
    return await submitter.world.state(job_id) == "Failed"


async def test_a_bound_pilot_waits_for_its_reservation_and_is_cancelled_when_it_is_late(
    site: Site, slurm: RealSlurm
) -> None:
    slurm.reserve("now+5minutes")
    submitter = Submitter(site, slurm.dispatcher)
    start = datetime.now(UTC) + timedelta(minutes=5)
    job_id = await order(site, reservation=slurm.reservation, walltime_seconds=300.0, start_at=start)
    await submitter.placing.send()
    assert await submitter.last(job_id) == ("Sent", "")
    name = await submitter.pilot_of(job_id)
    said = slurm.job(name)
    assert (said["Reservation"], said["JobState"]) == (slurm.reservation, "PENDING")
    await site.world.sql("update placement set latest_start = now() - interval '1 s'")
    await submitter.watch.look()
    await submitter.watch.clear()
    assert await submitter.last(job_id) == ("Failed", "TOO_LATE")
    assert slurm.job(name)["JobState"] == "CANCELLED"
    await submitter.audited()


async def test_a_placement_in_a_reservation_that_is_gone_fails(site: Site, slurm: RealSlurm) -> None:
    submitter = Submitter(site, slurm.dispatcher)
    job_id = await order(site, reservation="no-such-reservation")
    await submitter.placing.send()
    assert await submitter.last(job_id) == ("Failed", "REFUSED")
    assert await site.world.state(job_id) == "Checking"
    await submitter.audited()
