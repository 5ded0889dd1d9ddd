"""Assembles the advertiser: its loops and their parts."""

from services.advertiser.advertising import AdPublisher, Publisher, SourceLoop
from services.advertiser.config import Config
from services.advertiser.sources import sources
from wms.runtime import clock
from wms.runtime.every import Every
from wms.runtime.host import Host


async def build(host: Host, config: Config) -> None:
    """Register one loop with the host for each source of computing elements, so that a slow source delays no other."""
    publisher = Publisher(host.kafka, config.advertising.token_file)
    for source in sources(config):
        advertising = AdPublisher(publisher, source, now=clock.now)
        every = Every(f"advertise-{source.name}", source.look_seconds, advertising.read_and_publish)
        host.add(SourceLoop(every, source))
