"""Runs the job manager: `python -m services.job_manager --config FILE`."""

from services import fast_start
from services.job_manager.config import Config
from services.job_manager.service import build
from wms.runtime.host import serve

if __name__ == "__main__":
    fast_start.started()
    serve("job_manager", Config, build)
