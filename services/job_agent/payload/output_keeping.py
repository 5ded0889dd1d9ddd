"""Stores the outputs of an ended payload in the sandbox store: chosen files, and what it printed."""

import asyncio

import msgspec

from services.job_agent.payload.limit_enforcement import size
from services.job_agent.payload.workdir import Harvest, Workdir
from services.job_agent.threads import Threads
from wms.errors import Rejected, Unavailable
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import SandboxRef
from wms.transfer import Objects, keep

KEEPERS = 8
"""How many outputs an agent stores at a time."""
UPLOAD_TRIES = 3
UPLOAD_PAUSE_SECONDS = 0.5


class KeptOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the outputs of a payload: the files found, the stored sandbox, and why some are not stored."""

    harvest: Harvest
    output: SandboxRef | None
    """The sandbox in the store. None if nothing could be stored."""
    fault: Reason | None
    """Why some of the chosen files are not stored. None if all are."""


async def keep_outputs(
    workdir: Workdir, store: Objects, patterns: tuple[str, ...], allowed: int, threads: Threads
) -> KeptOutputs:
    """Store the files that `patterns` choose and what the payload printed, as one sandbox. Faults are in the result.

    If the chosen files have more than `allowed` bytes, only the printed output is stored. It is tried again while the store is
    unavailable. `threads` wait for the store. They must not be the loop's own, in which a gateway's store does its work.
    """
    for attempt in range(1, UPLOAD_TRIES):
        try:
            return await threads.run(_kept, workdir, store, patterns, allowed)
        except Unavailable:
            await asyncio.sleep(UPLOAD_PAUSE_SECONDS * attempt)
    return await threads.run(_kept, workdir, store, patterns, allowed, last=True)


def _kept(
    workdir: Workdir, store: Objects, patterns: tuple[str, ...], allowed: int, *, last: bool = False
) -> KeptOutputs:
    """Store the outputs; blocking. Raise Unavailable if the store cannot be reached, except at the last try."""
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
    """Return the outputs to store, and the reason if the chosen files cannot be stored."""
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
    store: Objects, harvest: Harvest, *, only_printed: bool
) -> tuple[SandboxRef | None, Reason | None]:
    """Store the outputs, or only stdout and stderr if the rest is refused; return the stored sandbox and the refusal."""
    chosen = {} if only_printed else harvest.selection.files
    try:
        return keep(store, chosen | harvest.printed), None
    except Rejected as error:
        output = _stored(store, harvest, only_printed=True)[0] if chosen else None
        return output, Reason(Code.OUTPUT_FAILED, str(error))
