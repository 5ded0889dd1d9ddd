"""The program that runs the advertiser: `python -m services.advertiser --config FILE`."""

from services import fast_start
from services.advertiser.config import Config
from services.advertiser.service import run
from wms.runtime.process import run_process

if __name__ == "__main__":
    fast_start.started()
    run_process("advertiser", Config, run)
