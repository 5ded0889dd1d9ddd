"""Assembles the advertiser: its loops and their parts. It has a token of its site and its access to Kafka, and nothing else of the system."""

from services.advertiser.advertising import AdPublisher, Publisher, SourceLoop
from services.advertiser.config import Config
from services.advertiser.heartbeat import Heartbeats
from services.advertiser.site_token import SiteToken
from services.advertiser.sources import sources
from wms.bus.kafka import Kafka
from wms.runtime import clock
from wms.runtime.patience import patiently
from wms.runtime.process import LoopProcess
from wms.runtime.watchdog import Watchdog


async def run(config: Config) -> None:
    """Run the advertiser until it is stopped."""
    kafka = Kafka(config.kafka, "advertiser")
    # No topics: its access rules let it create none.
    await patiently(kafka.start)
    try:
        process = LoopProcess()
        process.end_in_time()
        build(process, config, kafka)
        await process.run_loops([Watchdog()])
    finally:
        await kafka.close()


def build(process: LoopProcess, config: Config, kafka: Kafka) -> None:
    """Register the heartbeat, and one loop for each source of computing elements, so that a slow source delays no other."""
    publisher = Publisher(kafka, SiteToken(config.advertising.token_file))
    loops: list[SourceLoop] = []
    for source in sources(config):
        advertising = AdPublisher(publisher, source, now=clock.now)
        loops.append(SourceLoop(advertising, source))
        process.add(loops[-1])
    process.add(Heartbeats(publisher, kafka, loops))
