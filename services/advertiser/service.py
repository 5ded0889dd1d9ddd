"""The advertiser's loops and their parts."""

from services.advertiser.advertising import AdPublisher, Looking, Publisher
from services.advertiser.config import Config
from services.advertiser.sources import sources
from wms.runtime import clock
from wms.runtime.every import Every
from wms.runtime.host import Host


async def build(host: Host, config: Config) -> None:
    """Build one loop for each source, so that none waits for another."""
    publisher = Publisher(host.kafka, config.advertising.token_file)
    for source in sources(config):
        advertising = AdPublisher(publisher, source, now=clock.now)
        every = Every(f"advertise-{source.name}", source.look_seconds, advertising.look_and_say)
        host.add(Looking(every, source))
