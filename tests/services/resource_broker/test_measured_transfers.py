"""What attempts measured of storage hosts is known to the broker by site."""

from services.resource_broker.grid_snapshot import SnapshotReader
from tests.services.brokers import BrokerWorld
from wms.db import transfer
from wms.db.transfer import MeasuredWay
from wms.ids import SiteName
from wms.messages.reports import HostTransfer


async def test_bandwidth_of_a_storage_host_is_known_by_site(brokers: BrokerWorld) -> None:
    await brokers.advertise("A")
    way = HostTransfer(part="stage_in", host="se1", files=1, size=10, seconds=2.0)
    async with brokers.world.db.transaction() as tx:
        await transfer.keep(tx, [MeasuredWay(SiteName("A"), way)])
        found = await SnapshotReader().read(tx, ())
    (arriving,) = found.knowledge.arriving["A"]
    assert (arriving.host, arriving.size, arriving.seconds) == ("se1", 10, 2.0)
