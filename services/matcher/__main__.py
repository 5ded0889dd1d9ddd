"""Runs the matcher: `python -m services.matcher --config FILE`."""

from services import fast_start
from services.matcher.config import Config
from services.matcher.service import build
from wms.runtime.host import serve

if __name__ == "__main__":
    fast_start.started()
    serve("matcher", Config, build)
