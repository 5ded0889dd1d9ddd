"""The program that runs the advertiser: `python -m services.advertiser --config FILE`."""

from services import fast_start
from services.advertiser.config import Config
from services.advertiser.service import build
from wms.runtime.host import serve

if __name__ == "__main__":
    fast_start.started()
    serve("advertiser", Config, build)
