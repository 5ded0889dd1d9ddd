"""Runs the pilot submitter: `python -m services.pilot_submitter --config FILE`."""

from services import fast_start
from services.pilot_submitter.config import Config
from services.pilot_submitter.service import build
from wms.runtime.host import serve

if __name__ == "__main__":
    fast_start.started()
    serve("pilot_submitter", Config, build)
