"""Runs the resource broker: `python -m services.resource_broker --config FILE`."""

from services import fast_start
from services.resource_broker.config import Config
from services.resource_broker.service import build
from wms.runtime.host import serve

if __name__ == "__main__":
    fast_start.started()
    serve("resource_broker", Config, build)
