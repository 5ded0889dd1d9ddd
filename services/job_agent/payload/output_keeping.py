"""Keeps what a payload leaves: the files that its output patterns choose, and what it printed, go into the sandbox store."""

import asyncio

import msgspec

from services.job_agent.payload.limits import size
from services.job_agent.payload.workdir import Harvest, Workdir
from wms.errors import Rejected, Unavailable
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import SandboxRef
from wms.transfer import SandboxStore, keep

UPLOAD_TRIES = 3
UPLOAD_PAUSE_SECONDS = 0.5


class KeptOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """What a payload left, and what of it is in the store."""

    harvest: Harvest
    output: SandboxRef | None
    """None: nothing could be stored."""
    fault: Reason | None
    """Why not all is stored that the patterns chose."""


async def keep_outputs(
    workdir: Workdir, store: SandboxStore, patterns: tuple[str, ...], allowed: int
) -> KeptOutputs:
    """Keep the outputs of a payload that has ended, at most `allowed` bytes; a store that is away is tried again."""
    for attempt in range(1, UPLOAD_TRIES):
        try:
            return await asyncio.to_thread(_kept, workdir, store, patterns, allowed)
        except Unavailable:
            await asyncio.sleep(UPLOAD_PAUSE_SECONDS * attempt)
    return await asyncio.to_thread(_kept, workdir, store, patterns, allowed, last=True)


def _kept(
    workdir: Workdir, store: SandboxStore, patterns: tuple[str, ...], allowed: int, *, last: bool = False
) -> KeptOutputs:
    """Keep the outputs; blocking. Raises Unavailable if the store cannot be reached, but for the last try."""
    harvest, fault = _harvested(workdir, patterns, allowed)
    output, refusal = None, None
    try:
        output, refusal = _stored(store, harvest, only_printed=fault is not None)
    except Unavailable as error:
        if not last:
            raise
        refusal = Reason(Code.AGENT_ERROR, f"the outputs cannot be stored just now: {error}")
    return KeptOutputs(harvest=harvest, output=output, fault=fault or refusal)


def _harvested(workdir: Workdir, patterns: tuple[str, ...], allowed: int) -> tuple[Harvest, Reason | None]:
    """Return what there is to keep, and why it is not all that was asked for."""
    try:
        harvest = workdir.harvest(patterns)
    except (Rejected, OSError) as error:
        return workdir.harvest(()), Reason(Code.OUTPUT_FAILED, str(error))
    return harvest, _too_much(harvest, allowed)


def _too_much(harvest: Harvest, allowed: int) -> Reason | None:
    chosen = harvest.selection.size
    if chosen <= allowed:
        return None
    return Reason(
        Code.OUTPUT_FAILED, f"the output sandbox would hold {size(chosen)} of the {size(allowed)} allowed"
    )


def _stored(
    store: SandboxStore, harvest: Harvest, *, only_printed: bool
) -> tuple[SandboxRef | None, Reason | None]:
    """Put the outputs into the store, or at least what was printed, and say why not all."""
    chosen = {} if only_printed else harvest.selection.files
    try:
        return keep(store, chosen | harvest.printed), None
    except Rejected as error:
        output = _stored(store, harvest, only_printed=True)[0] if chosen else None
        return output, Reason(Code.OUTPUT_FAILED, str(error))
