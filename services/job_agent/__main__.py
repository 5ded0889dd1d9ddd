"""Wires the job agent: `python -m services.job_agent --config FILE`."""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import uvloop

from services import fast_start
from services.job_agent.agent import Agent
from services.job_agent.kafka_link import KafkaLink
from services.job_agent.payload import shepherd
from services.job_agent.payload.isolation import PayloadIsolation
from services.job_agent.payload.run import Workplace
from wms.auth.orders import PilotCredential
from wms.embedded.lifeline import Lifeline
from wms.errors import Rejected, Unavailable
from wms.ids import PilotId, SiteName
from wms.runtime.config import read
from wms.runtime.pilot_config import PilotConfig
from wms.telemetry import logs
from wms.transfer import open_store

PR_SET_DUMPABLE = 4


def main() -> None:
    """Run one pilot's agent to its end."""
    path = _config_file(sys.argv[1:])
    fast_start.started()
    try:
        config = read(path, PilotConfig, os.environ)
        logs.configure("job_agent", config.log.level, as_json=config.log.json)
        uvloop.run(_run(config, _credential(Path(config.pilot.token_file))))
    except (Rejected, Unavailable) as error:
        sys.stderr.write(f"job_agent: {error}\n")
        sys.exit(2 if isinstance(error, Rejected) else 75)
    except Exception as error:  # noqa: BLE001 - it ends the process, and is told
        import structlog

        structlog.get_logger().exception("agent failed")
        # Last of all, since the last line is shown as the reason of the pilot's end.
        sys.stderr.write(f"job_agent: {crash_words(error)}\n")
        sys.exit(75)


def crash_words(error: BaseException) -> str:
    """Return one sentence on an error that ended the agent: what it was, and where."""
    import textwrap
    import traceback

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    words = textwrap.shorten(f"{type(error).__name__}: {error}", 200)
    return f"the pilot ended through a fault of its own: {words}{where}"


def _config_file(arguments: list[str]) -> Path:
    match arguments:
        case ["--config", path]:
            return Path(path)
    import argparse  # only to explain: it takes as long as a sixth of all the rest

    parser = argparse.ArgumentParser(prog="job_agent")
    parser.add_argument("--config", type=Path, required=True, help="a TOML file")
    return Path(parser.parse_args(arguments).config)


def _credential(path: Path) -> PilotCredential:
    """Take token and key out of the reach of payloads, which run as the same user: out of its file, into closed memory."""
    shepherd.prctl(PR_SET_DUMPABLE, 0)
    try:
        text = path.read_text("ascii")
        path.unlink()
    except (OSError, UnicodeDecodeError) as error:
        raise Rejected("NO_TOKEN", f"the pilot's token cannot be taken from {path}: {error}") from None
    return PilotCredential.parse(text)


async def _run(config: PilotConfig, credential: PilotCredential) -> None:
    pilot = config.pilot
    workplace = Workplace(
        root=Path(pilot.directory),
        store=open_store(config.sandboxes.url),
        site=SiteName(pilot.site),
        pilot_id=PilotId(pilot.pilot_id),
        isolation=PayloadIsolation.of(config),
    )
    async with workplace:
        link = KafkaLink(config.kafka, PilotId(pilot.pilot_id), pilot.site, credential)
        agent = Agent(config, link, workplace)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, agent.told_to_end)
        async with asyncio.TaskGroup() as group:
            lifeline = group.create_task(_hold_on(pilot.lifeline, agent))
            await agent.run()
            lifeline.cancel()


async def _hold_on(lock_file: str, agent: Agent) -> None:
    """End with the system on this machine that sent the pilot, if one did."""
    if not lock_file:
        return
    with contextlib.suppress(Unavailable):  # it may be gone already
        await Lifeline.open(Path(lock_file)).wait()
    agent.abandon()


if __name__ == "__main__":
    main()
