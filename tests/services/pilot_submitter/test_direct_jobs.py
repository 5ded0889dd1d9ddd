"""Jobs that are sent directly: under a lease that the submitter holds, as if it were their agent."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.contract.dispatch.grounds import ArcGround, FakeHTCondorGround
from tests.middleware import Sites
from tests.services.pilot_submitter.direct import DirectSubmitter, direct_job, local, store, store_of
from tests.services.pilot_submitter.elements import ENDS, Site
from tests.services.pilot_submitter.placing import SLURM, FakeQueue, FakeRefusal
from tests.services.placing import told_broker
from tests.waiting import eventually
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.port import Dispatcher, PilotRequest, PilotSighting
from wms.transfer import download, keep, open_store


async def output_of(site: Site, job_id: int, to: Path) -> dict[str, bytes]:
    """Return the files of the job's last output sandbox."""
    row = (await site.world.attempts(job_id))[-1]
    await download(store(site), row["output_sha256"], to)
    return {str(path.relative_to(to)): path.read_bytes() for path in to.rglob("*") if path.is_file()}


async def test_a_job_runs_as_a_batch_job_and_its_outputs_are_fetched(site: Site, tmp_path: Path) -> None:
    submitter = DirectSubmitter(site, local(site))
    ref = keep(open_store(store_of(site).as_uri()), {"in.txt": b"brought"})
    job_id = await direct_job(
        site,
        *("sh", "-c", 'cat in.txt; echo "$GREETING" >&2; echo kept > out.dat; echo left > other'),
        environment={"GREETING": "hello"},
        input_sandbox=[{"sha256": ref.sha256, "size": ref.size}],
        output_sandbox=["*.dat"],
    )
    await submitter.until(job_id, "Done")
    assert await site.world.history(job_id) == [
        "Received", "Waiting", "Checking", "Waiting", "Matched", "Running", "Done",
    ]  # fmt: skip
    assert await submitter.last(job_id) == ("Ended", "DONE")
    assert await output_of(site, job_id, tmp_path / "out") == {
        "stdout.txt": b"brought", "stderr.txt": b"hello\n", "out.dat": b"kept\n",
    }  # fmt: skip
    (attempt,) = await site.world.attempts(job_id)
    assert (attempt["outcome"], attempt["exit_code"], attempt["stdout_tail"]) == ("done", 0, "brought")
    assert await site.pilots() == [("first", "Done")]
    await submitter.audited()


def condor(site: Site) -> Dispatcher:
    return FakeHTCondorGround(site.place / "condor").dispatcher()


async def test_files_are_carried_where_no_file_system_is_shared(site: Site, tmp_path: Path) -> None:
    submitter = DirectSubmitter(site, condor(site))
    ref = keep(open_store(store_of(site).as_uri()), {"in.txt": b"brought"})
    job_id = await direct_job(
        site,
        *("sh", "-c", "cat in.txt; mkdir -p d; echo kept > d/out.dat; exit 3"),
        input_sandbox=[{"sha256": ref.sha256, "size": ref.size}],
        output_sandbox=["d"],
        success_exit_codes=[3],
    )
    await submitter.until(job_id, "Done")
    assert await output_of(site, job_id, tmp_path / "out") == {
        "stdout.txt": b"brought", "stderr.txt": b"", "d/out.dat": b"kept\n",
    }  # fmt: skip
    await submitter.audited()


async def test_a_job_there_is_killed(site: Site) -> None:
    submitter = DirectSubmitter(site, condor(site))
    job_id = await direct_job(site, "sleep", "600")
    await submitter.until(job_id, "Running")
    await site.world.order("kill", job_id)
    await submitter.until(job_id, "Killed")
    await submitter.audited()


@pytest.mark.testbed
@pytest.mark.timeout(300)
async def test_a_job_is_an_xrsl_job_of_a_real_arc_element(site: Site, testbed: Sites, tmp_path: Path) -> None:
    ground = ArcGround(testbed)
    submitter = DirectSubmitter(site, ground.dispatcher())
    ref = keep(open_store(store_of(site).as_uri()), {"in.txt": b"brought"})
    job_id = await direct_job(
        site,
        *("sh", "-c", "cat in.txt; echo kept > out.dat; exit 3"),
        input_sandbox=[{"sha256": ref.sha256, "size": ref.size}],
        output_sandbox=["*.dat"],
        wall_time=300,
    )
    await submitter.until(job_id, "Failed", within=240)
    (attempt,) = await site.world.attempts(job_id)
    assert (attempt["reason"], attempt["exit_code"], attempt["stdout_tail"]) == ("EXIT_CODE", 3, "brought")
    assert (await output_of(site, job_id, tmp_path / "out"))["out.dat"] == b"kept\n"
    await submitter.audited()


@pytest.mark.parametrize(
    ("program", "reason", "exit_code", "signal"),
    [
        ("exit 3", "EXIT_CODE", 3, None),
        ("kill -9 $$", "SIGNAL", None, 9),
        ("exec /no/such/program", "NOT_STARTED", 127, None),
    ],
)
async def test_its_end_is_told_as_an_agent_would(
    site: Site, program: str, reason: str, exit_code: int | None, signal: int | None
) -> None:
    submitter = DirectSubmitter(site, local(site))
    job_id = await direct_job(site, "sh", "-c", program, max_attempts=1)
    await submitter.until(job_id, "Failed")
    (attempt,) = await site.world.attempts(job_id)
    assert (attempt["reason"], attempt["exit_code"], attempt["signal"]) == (reason, exit_code, signal)
    await submitter.audited()


async def test_a_running_job_is_killed(site: Site) -> None:
    submitter = DirectSubmitter(site, local(site))
    mark = site.place / "alive"
    job_id = await direct_job(site, "sh", "-c", f"touch '{mark}'; sleep 300 & wait")
    await submitter.until(job_id, "Running")
    await eventually(mark.exists)
    await site.world.order("kill", job_id)
    await submitter.until(job_id, "Killed")
    assert await submitter.last(job_id) == ("Ended", "KILLED_BY_USER")
    await submitter.audited()


async def test_its_lease_is_renewed_and_a_job_without_one_ends_itself(site: Site) -> None:
    submitter = DirectSubmitter(site, local(site))
    job_id = await direct_job(site, "sh", "-c", "sleep 300")
    await submitter.until(job_id, "Running")
    # The submitter is gone: nobody renews, and the lease runs out.
    await site.world.expire(job_id)
    assert await site.world.state(job_id) == "Checking"
    assert await submitter.last(job_id) == ("Ended", "LEASE_EXPIRED")
    assert [each.job_id for each in told_broker(site.world)] == [job_id]
    await submitter.watch.clear()
    assert await site.pilots() == [("first", "Done")], "and its batch job is cancelled"
    await submitter.audited()


async def test_another_instance_goes_on_where_the_first_died(site: Site) -> None:
    first = DirectSubmitter(site, local(site))
    go_on = site.place / "go on"
    job_id = await direct_job(site, "sh", "-c", f"until [ -e '{go_on}' ]; do sleep 0.1; done; echo done")
    await first.until(job_id, "Running")
    second = DirectSubmitter(site, local(site), "s-2")
    await second.direct.look()
    assert second.endpoint.sent == [], "while the first holds it"
    await site.world.sql("update placement set taken_until = now() - interval '1 s'")
    go_on.touch()
    await second.until(job_id, "Done")
    assert first.endpoint.sent[-1].finish == ()
    await second.audited()


async def test_a_refused_job_is_placed_anew(site: Site) -> None:
    submitter = DirectSubmitter(site, site.dispatcher(FakeRefusal, "first", ENDS))
    job_id = await direct_job(site, "true")
    await submitter.until(job_id, "Checking")
    assert await submitter.last(job_id) == ("Failed", "OFFER_DECLINED")
    assert [each.job_id for each in told_broker(site.world)] == [job_id]
    await submitter.audited()


async def test_a_job_that_is_too_late_in_the_queue_is_cancelled_and_placed_anew(site: Site) -> None:
    queue = site.dispatcher(DirectQueue, "first", ENDS)
    assert isinstance(queue, DirectQueue)
    submitter = DirectSubmitter(site, queue)
    job_id = await direct_job(
        site, "true", placement={"latest_start": datetime.now(UTC) + timedelta(hours=1)}
    )
    await submitter.until(job_id, "Matched")
    await eventually(lambda: sent(submitter, queue))
    await site.world.sql("update placement set latest_start = now() - interval '1 s'")
    await submitter.until(job_id, "Checking")
    assert len(queue.cancelled) == 1
    assert await submitter.last(job_id) == ("Failed", "OFFER_DECLINED")
    await submitter.audited()


async def sent(submitter: DirectSubmitter, queue: FakeQueue) -> bool:
    await submitter.round()
    return len(queue.taken) == 1


class DirectQueue(FakeQueue):
    """Stands for a batch system with a long queue, from which jobs can be cancelled."""

    async def follow(self, pilot_ids: Sequence[Any]) -> list[PilotSighting]:
        known = {each.pilot_id for each in self.taken}
        return [
            PilotSighting(
                pilot_id=each,
                state="Aborted" if each in self.cancelled or each not in known else "Waiting",
                reference="1" if each in known else None,
            )
            for each in pilot_ids
        ]


class DiesAfterSending(LocalDispatcher):
    """Stands for a submitter that dies before it has written that it sent a job."""

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        await super().send(orders)
        raise TimeoutError


async def test_a_job_that_arrived_though_nobody_wrote_it_is_not_sent_twice(site: Site) -> None:
    dying = DiesAfterSending(site.place / "first", ENDS, {"PATH": os.environ["PATH"]})
    first = DirectSubmitter(site, dying)
    count = site.place / "count"
    job_id = await direct_job(site, "sh", "-c", f"echo once >> '{count}'")
    await first.until(job_id, "Matched")

    async def arrived() -> bool:
        await first.direct.look()
        return any((site.place / "first").glob("p-*/process"))

    await eventually(arrived)
    await site.world.sql("update placement set taken_until = now() - interval '1 s'")
    second = DirectSubmitter(site, local(site), "s-2")
    await second.until(job_id, "Done")
    assert count.read_text() == "once\n"
    await second.audited()


async def test_a_job_that_does_not_fit_is_given_up(site: Site) -> None:
    submitter = DirectSubmitter(site, local(site))
    job_id = await direct_job(site, "true", tags=["no-such-tag"])
    await submitter.round()
    assert await submitter.last(job_id) == ("Ordered", "")
    await site.world.sql("update pilot set submitted_at = submitted_at - interval '1 h'")
    await submitter.until(job_id, "Checking")
    assert await submitter.last(job_id) == ("Failed", "NOT_TAKEN")
    await submitter.audited()


@pytest.mark.parametrize(
    ("trusted", "ends"), [((), "Checking"), (("lhcb/*/bob",), "Checking"), (("lhcb/*/ann",), "Done")]
)
async def test_only_those_whom_the_element_names_have_jobs_sent_directly(
    site: Site, tmp_path: Path, trusted: tuple[str, ...], ends: str
) -> None:
    ran = tmp_path / "ran"
    submitter = DirectSubmitter(site, local(site), terms=SLURM._replace(direct_trusted=trusted))
    job_id = await direct_job(site, "touch", str(ran))
    await submitter.until(job_id, ends)
    assert ran.exists() == (ends == "Done")
    if ends == "Checking":
        (told,) = told_broker(site.world)
        assert told.code == "NOT_TRUSTED"
        assert "`direct_trusted` of the element does not name them" in told.text
    await submitter.audited()
