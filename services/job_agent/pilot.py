"""Runs one pilot on its node: takes its token, sets up its workplace, and runs its job agent to the end."""

import asyncio
import signal
from pathlib import Path

import structlog

from services.job_agent.agent import Agent
from services.job_agent.gateway_store import AttemptStores, opened_store
from services.job_agent.link import AgentLink
from services.job_agent.link_choice import chosen_link
from services.job_agent.payload import shepherd
from services.job_agent.payload.gateway_access import gateway_of
from services.job_agent.payload.image_runtime import ImageRuntime
from services.job_agent.payload.isolation import PayloadIsolation
from services.job_agent.payload.runtime_search import find_runtime
from services.job_agent.payload.start_window import PayloadStartWindow
from services.job_agent.payload.workplace import Workplace
from services.job_agent.resource import disk_share, promises_containers
from services.job_agent.site_variables import site_variables
from wms.errors import Rejected
from wms.ids import PilotId, SiteName
from wms.runtime.pilot_config import PilotConfig

PR_SET_DUMPABLE = 4


def take_token_file(path: Path) -> str:
    """Read the pilot's token file, delete it, and return its content: the token and key, or the one-time secret.

    The process also becomes undumpable, so that others cannot read its memory. Payloads may run as the same user, and must
    find the token neither in a file nor in memory. Raise Rejected if the file cannot be read or deleted.
    """
    shepherd.prctl(PR_SET_DUMPABLE, 0)
    try:
        text = path.read_text("ascii")
        path.unlink()
    except (OSError, UnicodeDecodeError) as error:
        raise Rejected("NO_TOKEN", f"the pilot's token cannot be taken from {path}: {error}") from None
    return text


async def run(config: PilotConfig, text: str) -> None:
    """Run the pilot's job agent until it has ended. `text` is the content of its token file. SIGTERM and SIGINT make it drain.

    Raise Rejected or Unavailable if the pilot cannot get its token or open its sandbox store.
    """
    link = await chosen_link(config, text)
    images = await _image_runtime(config)
    async with (
        opened_store(config.sandboxes, lambda: link.token) as store,
        _workplace(config, store, link, images) as workplace,
    ):
        agent = Agent(config, link, workplace)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, agent.told_to_end)
        await agent.run()


def _workplace(
    config: PilotConfig, store: AttemptStores, link: AgentLink, images: ImageRuntime | None
) -> Workplace:
    return Workplace(
        root=Path(config.pilot.directory),
        store=store,
        site=SiteName(config.pilot.site),
        pilot_id=PilotId(config.pilot.pilot_id),
        of_site=site_variables(config),
        isolation=PayloadIsolation.of(config),
        transfers=config.transfers,
        gateway=gateway_of(config, link.payload_token),
        images=images,
        cgroups=config.pilot.cgroups == "auto",
        disk_share=disk_share(config),
        grace_most=config.pilot.grace_most_seconds,
        walltime=config.pilot.walltime_seconds,
        starts=PayloadStartWindow(config.pilot.earliest_start, config.pilot.latest_start),
    )


async def _image_runtime(config: PilotConfig) -> ImageRuntime | None:
    """Return the program (Podman or Apptainer) that runs containers of images on this node; None if there is none that works.

    Programs are tried only if the computing element says that its nodes run containers. A failure is logged.
    """
    if not promises_containers(config):
        return None
    found, fault = await asyncio.to_thread(find_runtime)
    if found is None:
        structlog.get_logger().warning("containers cannot be run", reason=fault)
    return found


def crash_words(error: BaseException) -> str:
    """Return one sentence on an error that ended the agent: its class, text, and where it was raised."""
    import textwrap
    import traceback

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    words = textwrap.shorten(f"{type(error).__name__}: {error}", 200)
    return f"the pilot ended through a fault of its own: {words}{where}"
