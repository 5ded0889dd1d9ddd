"""The program that runs the job agent of one pilot: `python -m services.job_agent --config FILE`."""

import asyncio
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from services import fast_start
from services.job_agent import pilot
from services.job_agent.pilot import crash_words, take_token_file
from wms.errors import Rejected, Unavailable
from wms.runtime.config import config_file, read
from wms.runtime.pilot_config import PilotConfig
from wms.telemetry import logs


def _run(agent: Coroutine[Any, Any, None]) -> None:
    """Run the agent on uvloop's event loop if uvloop is installed, else on asyncio's own.

    An agent that is sent to a node as a single file has no uvloop.
    """
    try:
        import uvloop
    except ImportError:
        asyncio.run(agent)
    else:
        uvloop.run(agent)


def main() -> None:
    """Run the job agent of one pilot until it ends.

    The process exits with code 2 if something is rejected, such as the configuration or the token. It exits with 75 if a service
    is unavailable or the agent itself fails.
    """
    path = config_file("job_agent", sys.argv[1:])
    fast_start.started()
    try:
        config = read(path, PilotConfig, os.environ, strict=False)
        logs.configure("job_agent", config.log.level, as_json=config.log.json)
        _run(pilot.run(config, take_token_file(Path(config.pilot.token_file))))
    except (Rejected, Unavailable) as error:
        sys.stderr.write(f"job_agent: {error}\n")
        sys.exit(2 if isinstance(error, Rejected) else 75)
    except Exception as error:  # noqa: BLE001 - it ends the process, and is told
        import structlog

        structlog.get_logger().exception("agent failed")
        # Last of all, since the last line is shown as the reason of the pilot's end.
        sys.stderr.write(f"job_agent: {crash_words(error)}\n")
        sys.exit(75)


if __name__ == "__main__":
    main()
