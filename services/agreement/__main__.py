"""Runs the agreement service: `python -m services.agreement --config FILE`."""

from services import fast_start
from services.agreement.config import Config
from services.agreement.service import build
from wms.runtime.host import serve

if __name__ == "__main__":
    fast_start.started()
    serve("agreement", Config, build)
