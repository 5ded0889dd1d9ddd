"""Stores the outputs of an ended payload in the sandbox store: the files that its job chose, and what it printed.

The payload's stager chooses and packs the files. The agent takes the archive as a stream of bounded length.
"""

import asyncio
import contextlib
import tempfile
from pathlib import Path

import msgspec

from services.job_agent.payload.limit_enforcement import size
from services.job_agent.payload.output_capture import Tail
from services.job_agent.payload.stager_link import Selected, StagerLink
from services.job_agent.payload.workdir import STDERR, STDOUT, TAIL_CHARACTERS, Workdir
from services.job_agent.threads import Threads
from wms.errors import Rejected, Unavailable
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import SandboxRef
from wms.transfer import Objects, keep
from wms.transfer.patterns import check_pattern

KEEPERS = 8
"""How many payloads' outputs an agent stores at the same time; others wait."""
UPLOAD_TRIES = 3
UPLOAD_PAUSE_SECONDS = 0.5
TOO_LARGE = "SANDBOX_TOO_LARGE"
SMALL = 1024 * 1024
"""Up to this many bytes an archive is stored from memory."""


class KeptOutputs(msgspec.Struct, frozen=True, kw_only=True):
    """The result of storing a payload's outputs: what it left, the stored sandbox, and why files are missing in it."""

    selected: Selected = Selected()
    stdout: Tail = Tail("", 0)
    stderr: Tail = Tail("", 0)
    output: SandboxRef | None = None
    """The sandbox in the store. None if nothing could be stored."""
    fault: Reason | None = None
    """The reason if chosen files, or everything, could not be stored. None if all is stored."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which files of a payload are its outputs."""

    patterns: tuple[str, ...] = ()
    allowed: int
    """The most bytes that the chosen files may have together. With more, the largest are not stored."""
    unchanged_ns: int | None = None
    """The latest time, in nanoseconds, at which the status of an input was changed before the payload began. None: there are none."""


class _Packed(msgspec.Struct, frozen=True, kw_only=True):
    """What to store: an archive with the chosen files, or None for what was printed alone."""

    selected: Selected
    archive: Path | bytes | None = None
    fault: Reason | None = None


async def keep_outputs(
    workdir: Workdir,
    store: Objects,
    stager: StagerLink | None,
    wanted: Wanted,
    threads: Threads,
) -> KeptOutputs:
    """Store the wanted files, and what the payload printed, as one sandbox. Errors are in the result's `fault`.

    `stager` is that of a payload that left files; None: it left none. If the store is unavailable, it is tried three times in
    all. The call waits for the store in one of `threads`. These must not be the event loop's own, in which a gateway's store
    works.
    """
    if stager is None:
        packed = _of_nothing(wanted.patterns)
    else:
        packed = await threads.run(_packed, workdir, store, stager, wanted)
    output, fault = None, packed.fault
    for attempt in range(1, UPLOAD_TRIES + 1):
        try:
            output, refusal = await threads.run(_stored, store, workdir, packed.archive)
        except Unavailable as error:
            refusal = Reason(Code.AGENT_ERROR, f"the outputs cannot be stored just now: {error}")
            if attempt < UPLOAD_TRIES:
                await asyncio.sleep(UPLOAD_PAUSE_SECONDS * attempt)
                continue
        fault = fault or refusal
        break
    return KeptOutputs(
        selected=packed.selected,
        stdout=workdir.stdout.tail(TAIL_CHARACTERS),
        stderr=workdir.stderr.tail(TAIL_CHARACTERS),
        output=output,
        fault=fault,
    )


def _of_nothing(patterns: tuple[str, ...]) -> _Packed:
    """Return what to store of a payload that left no files."""
    try:
        for each in patterns:
            check_pattern(each)
    except Rejected as error:
        return _Packed(selected=Selected(), fault=Reason(Code.OUTPUT_FAILED, str(error)))
    return _Packed(selected=Selected(unmatched=list(patterns)))


def _packed(workdir: Workdir, store: Objects, stager: StagerLink, wanted: Wanted) -> _Packed:
    """Let the stager choose and pack the outputs that fit. Blocking. Errors are in the result's `fault`."""
    selected, room = Selected(), wanted.allowed
    try:
        while True:
            selected, fault = _selected(stager, wanted, room)
            fault = fault or _too_much(selected, wanted.allowed)
            if not selected.chosen:
                return _Packed(selected=selected, fault=fault)
            try:
                return _Packed(selected=selected, archive=_archive(workdir, store, stager), fault=fault)
            except Rejected as error:
                if error.code != TOO_LARGE or not selected.size:
                    raise
                # Files that cannot be compressed, with their names and what was printed.
                room = selected.size * 3 // 4
    except (Rejected, OSError) as error:
        return _Packed(selected=selected, fault=Reason(Code.OUTPUT_FAILED, str(error)))
    except Unavailable as error:
        return _Packed(selected=selected, fault=Reason(Code.AGENT_ERROR, str(error)))


def _selected(stager: StagerLink, wanted: Wanted, room: int) -> tuple[Selected, Reason | None]:
    """Return what the patterns choose, of at most `room` bytes. The reason is not None if they choose nothing because of a fault."""
    try:
        return stager.select(wanted.patterns, wanted.unchanged_ns, (STDOUT, STDERR), room), None
    except (Rejected, OSError) as error:
        fault = Reason(Code.OUTPUT_FAILED, str(error))
        return stager.select((), wanted.unchanged_ns, (STDOUT, STDERR), room), fault


def _too_much(selected: Selected, allowed: int) -> Reason | None:
    if not selected.unfit:
        return None
    files = selected.chosen + selected.unfit
    said = f"the output sandbox would hold {size(selected.wanted)} of the {size(allowed)} allowed"
    return Reason(Code.OUTPUT_FAILED, f"{said}, in {files:,} files, {selected.chosen:,} of them kept")


def _archive(workdir: Workdir, store: Objects, stager: StagerLink) -> Path | bytes:
    """Return the archive with the chosen files and what was printed: its bytes, or a file of the agent with them."""
    path = workdir.directory / "outputs.tar.gz"
    with contextlib.ExitStack() as opened, path.open("w+b") as target:
        nothing = opened.enter_context(tempfile.TemporaryFile())
        printed = {
            name: nothing if file is None else opened.enter_context(file.open("rb"))
            for name, file in workdir.printed.items()
        }
        stager.pack(printed, target, store.max_object, chosen=True)
        if target.tell() > SMALL:
            return path
        target.seek(0)
        return target.read()


def _stored(
    store: Objects, workdir: Workdir, archive: Path | bytes | None
) -> tuple[SandboxRef | None, Reason | None]:
    """Store the archive; without one, or if the store refuses it, stdout and stderr alone. Return the sandbox, and the refusal.

    The sandbox is None if nothing is stored, the reason None if nothing was refused. Raise Unavailable if the store cannot be
    reached. Blocking.
    """
    try:
        if archive is not None:
            return store.keep(archive), None
        return keep(store, {name: path or b"" for name, path in workdir.printed.items()}), None
    except Rejected as error:
        output = _stored(store, workdir, None)[0] if archive is not None else None
        return output, Reason(Code.OUTPUT_FAILED, str(error))
