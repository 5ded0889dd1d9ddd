"""Stores the outputs of an ended payload in the sandbox store: the files that its job chose, and what it printed."""

import asyncio

import msgspec

from services.job_agent.payload.limit_enforcement import size
from services.job_agent.payload.workdir import PayloadFiles, Workdir
from services.job_agent.threads import Threads
from wms.errors import Rejected, Unavailable
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import SandboxRef
from wms.transfer import Objects, keep

KEEPERS = 8
"""How many payloads' outputs an agent stores at the same time; others wait."""
UPLOAD_TRIES = 3
UPLOAD_PAUSE_SECONDS = 0.5


class KeptOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """The result of storing a payload's outputs: the files found (`harvest`), the stored sandbox, and why files are missing in it."""

    harvest: PayloadFiles
    output: SandboxRef | None
    """The sandbox in the store. None if nothing could be stored."""
    fault: Reason | None
    """The reason if chosen files, or everything, could not be stored. None if all is stored."""


async def keep_outputs(
    workdir: Workdir, store: Objects, patterns: tuple[str, ...], allowed: int, threads: Threads
) -> KeptOutputs:
    """Store the files that `patterns` choose, and what the payload printed, as one sandbox. Errors are in the result's `fault`.

    If the chosen files have more than `allowed` bytes together, only the printed output is stored. If the store is
    unavailable, it is tried three times in all. The call waits for the store in one of `threads`. These must not be the event
    loop's own, in which a gateway's store works.
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
    """Store the outputs as one sandbox. Blocking. `allowed` is the most bytes of chosen files.

    Raise Unavailable if the store cannot be reached, but at the `last` try return that as the fault.
    """
    harvest, fault = _harvested(workdir, patterns, allowed)
    output, refusal = None, None
    try:
        output, refusal = _stored(store, harvest, only_printed=fault is not None)
    except Unavailable as error:
        if not last:
            raise
        refusal = Reason(Code.AGENT_ERROR, f"the outputs cannot be stored just now: {error}")
    return KeptOutputs(harvest=harvest, output=output, fault=fault or refusal)


def _harvested(
    workdir: Workdir, patterns: tuple[str, ...], allowed: int
) -> tuple[PayloadFiles, Reason | None]:
    """Return the outputs to store. The reason is not None if the chosen files must not be stored, but only what was printed."""
    try:
        harvest = workdir.harvest(patterns)
    except (Rejected, OSError) as error:
        return workdir.harvest(()), Reason(Code.OUTPUT_FAILED, str(error))
    return harvest, _too_much(harvest, allowed)


def _too_much(harvest: PayloadFiles, allowed: int) -> Reason | None:
    chosen = harvest.selection.size
    if chosen <= allowed:
        return None
    return Reason(
        Code.OUTPUT_FAILED, f"the output sandbox would hold {size(chosen)} of the {size(allowed)} allowed"
    )


def _stored(
    store: Objects, harvest: PayloadFiles, *, only_printed: bool
) -> tuple[SandboxRef | None, Reason | None]:
    """Store the outputs; if the store refuses them, only stdout and stderr. Return the stored sandbox, and the refusal as a reason.

    The sandbox is None if nothing is stored, the reason None if nothing was refused. Blocking.
    """
    chosen = {} if only_printed else harvest.selection.files
    try:
        return keep(store, chosen | harvest.printed), None
    except Rejected as error:
        output = _stored(store, harvest, only_printed=True)[0] if chosen else None
        return output, Reason(Code.OUTPUT_FAILED, str(error))
