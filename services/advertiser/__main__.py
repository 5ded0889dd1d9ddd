"""Wires the advertiser."""

from services.advertiser.advertising import Advertising
from services.advertiser.config import Config
from wms.runtime import clock
from wms.runtime.host import Host, serve
from wms.runtime.machine import look


async def build(host: Host, config: Config) -> None:
    """Put its loop together."""
    advertising = Advertising(host.kafka, config.advertising, config.elements, look=look, now=clock.now)
    host.every("advertise", 5.0, advertising.look_and_say)


if __name__ == "__main__":
    serve("advertiser", Config, build)
