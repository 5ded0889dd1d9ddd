"""How a payload ended, and the result that the agent reports for it to the job manager."""

import signal
import textwrap
from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from services.job_agent.payload.file_staging import FileStaging
from services.job_agent.payload.limit_enforcement import PayloadLimits, memory_exhausted, size
from services.job_agent.payload.output_upload import KeptOutputs
from services.job_agent.payload.shepherd_messages import ProcessEnd
from wms.ids import AttemptId
from wms.job.reasons import HOLDING, Code, Reason
from wms.job.signal_words import OF_MEMORY, signal_hint, signal_name, signal_of_exit_code
from wms.jobdesc.description import SandboxRef
from wms.messages.reports import TRANSFERS_LIMIT, HostTransfer, Result, Usage
from wms.transfer import UnmatchedFiles

LOST_CODES = frozenset({Code.PILOT_STOPPED, Code.AGENT_ERROR})
"""Codes of reasons that neither the payload nor its user caused. A job that ends with one is reported as lost and tried again."""
TAIL_CHARACTERS = 4_096
FAULT_CHARACTERS = 500
LEFT_CHARACTERS = 600


class PayloadOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a payload ended: the reason, its exit code or signal, the resources that it used, and its outputs.

    `stdout_tail` and `stderr_tail` are the last characters that it printed. `stdout_from` and `stderr_from` bytes came before them.
    """

    reason: Reason
    """The reason for the end: DONE, EXIT_CODE or SIGNAL if the payload ended by itself, else why it was ended or could not start."""
    began: bool = True
    """Whether the payload's program was started."""
    exit_code: int | None = None
    signal: int | None = None
    usage: Usage = Usage()
    output: SandboxRef | None = None
    """The sandbox in the store with what the payload printed and the chosen files. None if nothing could be stored."""
    unmatched: tuple[str, ...] = ()
    """The output patterns of the job description that matched no file."""
    left: UnmatchedFiles = UnmatchedFiles()
    """The files that the payload left and no output pattern chose: their number and some of their names."""
    refused: tuple[str, ...] = ()
    """Files that an output pattern matched but that could not be stored, as texts `name: reason`."""
    missed: tuple[str, ...] = ()
    """For each optional output that was not sent to its URL, a text that says why."""
    stdout_tail: str = ""
    stderr_tail: str = ""
    stdout_from: int = 0
    stderr_from: int = 0
    transfers: tuple[HostTransfer, ...] = ()
    """For each storage host the files moved, their bytes and the seconds that they took."""


def outcome_of(
    ended: ProcessEnd, reason: Reason, usage: Usage, kept: KeptOutputs, staging: FileStaging
) -> PayloadOutcome:
    """Return the outcome of a payload whose outputs were kept. `staging` says what became of its files by URL."""
    selected = kept.selected
    return PayloadOutcome(
        reason=reason,
        exit_code=ended.exit_code,
        signal=ended.signal,
        usage=usage,
        output=kept.output,
        unmatched=tuple(selected.unmatched),
        left=selected.left_behind,
        refused=tuple(selected.refused),
        missed=staging.missed,
        stdout_tail=kept.stdout.text,
        stderr_tail=kept.stderr.text,
        stdout_from=kept.stdout.start,
        stderr_from=kept.stderr.start,
        transfers=staging.measured,
    )


def result_of(attempt_id: AttemptId, outcome: PayloadOutcome) -> Result:
    """Return the result to report for an attempt whose payload had this outcome.

    The code is OUTPUT_MISSING, and the job still counts as done, if a pattern matched no file. Long texts are cut to what a
    message may have.
    """
    code = outcome.reason.code
    return Result(
        job_id=attempt_id.job_id,
        epoch=attempt_id.epoch,
        outcome=_outcome_of(code),
        # The job is done, but a list of jobs shows that outputs are missing.
        code=Code.OUTPUT_MISSING if code is Code.DONE and outcome.unmatched else code,
        text=_text(outcome),
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        usage=outcome.usage,
        output_sha256=outcome.output.sha256 if outcome.output else None,
        output_bytes=outcome.output.size if outcome.output else 0,
        stdout_tail=storable(outcome.stdout_tail[-TAIL_CHARACTERS:]),
        stderr_tail=storable(outcome.stderr_tail[-TAIL_CHARACTERS:]),
        stdout_from=outcome.stdout_from,
        stderr_from=outcome.stderr_from,
        began=outcome.began,
        transfers=outcome.transfers[:TRANSFERS_LIMIT],
    )


def agent_fault(error: Exception) -> Reason:
    """Return the reason for a job that ended because the agent itself failed: the code AGENT_ERROR and one sentence with the error."""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return Reason(Code.AGENT_ERROR, f"a fault of the agent's own: {words}"[:FAULT_CHARACTERS])


def unwatched(error: Exception) -> Reason:
    """Return the reason for a payload that was ended because sampling its usage failed: the code AGENT_ERROR and the error."""
    return Reason(Code.AGENT_ERROR, f"its limits could not be watched: {type(error).__name__}: {error}"[:500])


def reason_of_end(
    ended: ProcessEnd,
    success_exit_codes: Collection[int],
    limits: PayloadLimits,
    overrun: float = 0.0,
    peak_bytes: int = 0,
) -> Reason:
    """Return the reason for the end of a payload that the agent did not stop. Exit codes in `success_exit_codes` count as success.

    `limits` are those of the payload. `overrun` is the pilot's wall time in the batch system, in seconds, if it is over; else 0.
    `peak_bytes` is the most memory that the payload was seen to use.
    """
    if ended.expired:
        return Reason(Code.LEASE_EXPIRED, "stopped by the node, for its lease was not renewed in time")
    if ended.lost:
        return Reason(
            Code.AGENT_ERROR, "the process that minds this node's payloads died, and the payload with it"
        )
    if ended.exit_code in success_exit_codes:
        return Reason(Code.DONE)
    number = ended.signal or signal_of_exit_code(ended.exit_code or 0)
    if ended.out_of_memory and number == signal.SIGKILL:
        return memory_exhausted(limits.memory_bytes)
    used = memory_hint(number, peak_bytes, limits.memory_bytes)
    if ended.signal is not None:
        return Reason(Code.SIGNAL, signal_text(ended.signal, overrun) + used)
    of_signal = f", which a shell makes of {signal_name(number)}{signal_hint(number)}{used}" if number else ""
    return Reason(Code.EXIT_CODE, f"ended with exit code {ended.exit_code}{of_signal}")


def memory_hint(number: int, peak_bytes: int, limit: int | None) -> str:
    """Return how much memory a payload was seen to use that the signal `number` ended, if that signal may come of it."""
    if number not in OF_MEMORY or not peak_bytes:
        return ""
    asked = "" if limit is None else f" of the {size(limit)} asked for"
    return f"; it was seen to use {size(peak_bytes)} of memory{asked}"


def whole_usage(ended: ProcessEnd, seen: Usage, disk: int, *, in_image: bool) -> Usage:
    """Return the resources that an ended payload used, from the shepherd's message `ended` and the samples `seen`.

    `disk` is the bytes in its directories at the end. `in_image` says that it ran in a container of an image: the memory then
    comes from the samples alone, as `ended` includes Podman or Apptainer. Of a payload that the kernel ended at its limit of memory
    it comes from both.
    """
    # A lost shepherd could not count: what was sampled is the best there is.
    user = (
        max(ended.user_seconds, seen.cpu_user_seconds - ended.system_seconds)
        if ended.lost
        else ended.user_seconds
    )
    return Usage(
        cpu_user_seconds=user,
        cpu_system_seconds=ended.system_seconds,
        wall_seconds=ended.wall_seconds or seen.wall_seconds,
        # The program that makes a container may be larger than what is in it.
        max_rss_bytes=max(
            0 if in_image and not ended.out_of_memory else ended.max_rss_bytes, seen.max_rss_bytes
        ),
        disk_bytes=max(disk, seen.disk_bytes),
    )


def signal_text(number: int, overrun: float = 0.0) -> str:
    """Return a sentence on a payload that was ended by the signal `number`, which the agent did not send.

    `overrun` is the pilot's wall time in the batch system, in seconds, if it is over; else 0.
    """
    hint = signal_hint(number)
    if overrun and number in (signal.SIGTERM, signal.SIGKILL, signal.SIGXCPU):
        hint = f": the batch system's limit of {overrun:,.0f} s for its pilot was over"
    return f"ended by {signal_name(number)}, which the agent did not send{hint}"


def not_begun(attempt_id: AttemptId, reason: Reason) -> Result:
    """Return the result to report for an attempt that ended for `reason` before its payload started."""
    return result_of(attempt_id, PayloadOutcome(reason=reason, began=False))


def _outcome_of(code: Code) -> Literal["done", "failed", "killed", "lost"]:
    if code is Code.DONE:
        return "done"
    if code is Code.KILLED_BY_USER:
        return "killed"
    return "lost" if code in LOST_CODES | HOLDING else "failed"


def _text(outcome: PayloadOutcome) -> str:
    parts = [outcome.reason.text]
    if outcome.unmatched:
        parts.append(f"no file matches {_some(outcome.unmatched)}")
    if outcome.refused:
        parts.append(f"not kept: {_some(outcome.refused)}")
    if outcome.missed:
        parts.append(f"not delivered: {_some(outcome.missed)}")
    if outcome.left.count and outcome.reason.code is Code.DONE:
        parts.append(_left_words(outcome.left))
    return storable("; ".join(part for part in parts if part)[:1_000])


def _left_words(left: UnmatchedFiles) -> str:
    names = textwrap.shorten(", ".join(left.names), LEFT_CHARACTERS, placeholder=" ...")
    files = "1 file" if left.count == 1 else f"{left.count} files"
    return f"{files} left behind: {names} (--output '**' keeps them all)"


def storable(text: str) -> str:
    """Return the text with the characters replaced that neither messages nor the database can hold: NUL and lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def _some(lines: Sequence[str], most: int = 5) -> str:
    more = f" and {len(lines) - most} more" if len(lines) > most else ""
    return ", ".join(lines[:most]) + more
