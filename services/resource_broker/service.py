"""The resource broker's loops and their parts."""

from services.resource_broker.config import Config
from wms.runtime.host import Host


async def build(host: Host, config: Config) -> None:
    """Build the loops of the resource broker and add them to the host."""
    host.show("sites_asked", lambda: config.brokering.sites_asked)
