"""Transfers: measured ways are kept and read by predictors, and progress is told by the holder of the lease alone."""

from tests.services.world import World
from wms.db import prediction, transfer
from wms.db.transfer import MeasuredWay
from wms.ids import Epoch, JobId, PilotId, SiteName
from wms.messages.reports import HostTransfer, StagingReport


def way(host: str, size: int = 1_000, seconds: float = 2.0) -> MeasuredWay:
    return MeasuredWay(
        SiteName("A"), HostTransfer(part="stage_in", host=host, files=1, size=size, seconds=seconds)
    )


async def test_measured_ways_are_kept_by_host_and_forgotten(the_world: World) -> None:
    async with the_world.db.transaction() as tx:
        await transfer.keep(
            tx, [way("se1"), way("se2", seconds=4.0), way("se3", size=0), way("se4", seconds=0.0)]
        )
        found = await prediction.transfers(tx, 10)
        assert {(each.site, each.part, each.host, each.size, each.seconds) for each in found} == {
            ("A", "stage_in", "se1", 1_000, 2.0),
            ("A", "stage_in", "se2", 1_000, 4.0),
        }
        assert await transfer.forget(tx, 60.0, 10) == 0
        assert await transfer.forget(tx, -60.0, 1) == 1
        assert await transfer.forget(tx, -60.0, 10) == 1


async def test_the_holder_alone_tells_how_far_transfers_are(the_world: World) -> None:
    await the_world.submitted()
    (held,) = await the_world.match()
    job_id, epoch = held

    def said(of: int) -> StagingReport:
        return StagingReport(
            job_id=JobId(job_id), epoch=Epoch(of), part="stage_in", files=2, files_done=1, bytes_done=5
        )

    holder = PilotId((await the_world.job(job_id))["pilot_id"])
    async with the_world.db.transaction() as tx:
        await transfer.note(tx, [(holder, said(epoch))])
        assert await transfer.progress(tx, job_id) is None, "it has not accepted the job"
    await the_world.report(accept=(held,))
    async with the_world.db.transaction() as tx:
        await transfer.note(tx, [(PilotId("other"), said(epoch)), (holder, said(epoch + 1))])
        assert await transfer.progress(tx, job_id) is None
        await transfer.note(tx, [(holder, said(epoch))])
        assert await transfer.progress(tx, job_id) == said(epoch)
