"""Runs the gateway: `python -m services.gateway --config FILE`."""

from services import fast_start
from services.gateway.config import Config
from services.gateway.service import build
from wms.runtime.host import serve

if __name__ == "__main__":
    fast_start.started()
    serve("gateway", Config, build)
