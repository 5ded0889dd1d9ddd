"""An offered job, and a reporter whose link leads to nobody, and an injected fault."""

from typing import Any

import msgspec

from services.job_agent.reporter import PilotStatus, Reporter
from wms.errors import Unavailable
from wms.ids import Epoch, JobId, PilotId
from wms.messages.site_inbox import OfferedJob


def offered(number: int, **description: object) -> OfferedJob:
    text = msgspec.json.encode({"executable": "true", **description})
    return OfferedJob(
        job_id=JobId(number),
        epoch=Epoch(1),
        owner="a",
        owner_group="g",
        vo="v",
        description=msgspec.Raw(text),
    )


def short(number: int, likely_seconds: float) -> OfferedJob:
    """Return an offered job of a queue whose jobs take so many seconds."""
    return msgspec.structs.replace(offered(number), likely_seconds=likely_seconds)


class Nobody:
    """A link to nobody."""

    async def report(self, report: object) -> None:
        raise Unavailable("nobody is there")


def reporter() -> Reporter:
    return Reporter(Nobody(), PilotId("p"), lambda: PilotStatus("running", 1, 0))  # type: ignore[arg-type]


class FaultError(Exception):
    """A fault injected by a test."""


def failing(*_: object, **__: object) -> Any:
    raise FaultError("injected")
