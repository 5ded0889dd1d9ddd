"""How a payload ended, and the result that is reported of it: whose doing it was, and in words."""

import textwrap
from collections.abc import Sequence
from typing import Literal

import msgspec

from wms.ids import AttemptId
from wms.job.reasons import Code, Reason
from wms.jobdesc.description import SandboxRef
from wms.messages.reports import Result, Usage
from wms.transfer import UnmatchedFiles

LOST_CODES = frozenset({Code.PILOT_STOPPED, Code.AGENT_ERROR})
"""Ends that are neither the payload's nor its user's doing: the job is tried again."""
TAIL_CHARACTERS = 4_096
FAULT_CHARACTERS = 500
LEFT_CHARACTERS = 600


class PayloadOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a payload ended."""

    reason: Reason
    """DONE, EXIT_CODE or SIGNAL when it ended by itself, else what ended it or kept it from starting."""
    began: bool = True
    """Whether its program was started."""
    exit_code: int | None = None
    signal: int | None = None
    usage: Usage = Usage()
    output: SandboxRef | None = None
    """`stdout.txt`, `stderr.txt` and what the output patterns chose."""
    unmatched: tuple[str, ...] = ()
    """Output patterns that matched nothing."""
    left: UnmatchedFiles = UnmatchedFiles()
    """Files that its output patterns did not choose."""
    refused: tuple[str, ...] = ()
    """Lines «name: why» of outputs that were matched and could not be carried."""
    stdout_tail: str = ""
    stderr_tail: str = ""


def result_of(attempt_id: AttemptId, outcome: PayloadOutcome) -> Result:
    """Return what to report of a payload that ended like this."""
    code = outcome.reason.code
    return Result(
        job_id=attempt_id.job_id,
        epoch=attempt_id.epoch,
        outcome=_outcome_of(code),
        # Done it is, but a list of jobs shows that it did not leave what it was to leave.
        code=Code.OUTPUT_MISSING if code is Code.DONE and outcome.unmatched else code,
        text=_text(outcome),
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        usage=outcome.usage,
        output_sha256=outcome.output.sha256 if outcome.output else None,
        output_bytes=outcome.output.size if outcome.output else 0,
        stdout_tail=storable(outcome.stdout_tail[-TAIL_CHARACTERS:]),
        stderr_tail=storable(outcome.stderr_tail[-TAIL_CHARACTERS:]),
        began=outcome.began,
    )


def agent_fault(error: Exception) -> Reason:
    """Return the reason of a job that ended through a fault of the agent's own: one sentence, without a trace."""
    words = " ".join(f"{type(error).__name__}: {error}".split())
    return Reason(Code.AGENT_ERROR, f"a fault of the agent's own: {words}"[:FAULT_CHARACTERS])


def not_begun(attempt_id: AttemptId, reason: Reason) -> Result:
    """Return what to report of a job that ended before its payload began."""
    return result_of(attempt_id, PayloadOutcome(reason=reason, began=False))


def _outcome_of(code: Code) -> Literal["done", "failed", "killed", "lost"]:
    if code is Code.DONE:
        return "done"
    if code is Code.KILLED_BY_USER:
        return "killed"
    return "lost" if code in LOST_CODES else "failed"


def _text(outcome: PayloadOutcome) -> str:
    parts = [outcome.reason.text]
    if outcome.unmatched:
        parts.append(f"no file matches {_some(outcome.unmatched)}")
    if outcome.refused:
        parts.append(f"not kept: {_some(outcome.refused)}")
    if outcome.left.count and outcome.reason.code is Code.DONE:
        parts.append(_left_words(outcome.left))
    return storable("; ".join(part for part in parts if part)[:1_000])


def _left_words(left: UnmatchedFiles) -> str:
    names = textwrap.shorten(", ".join(left.names), LEFT_CHARACTERS, placeholder=" ...")
    files = "1 file" if left.count == 1 else f"{left.count} files"
    return f"{files} left behind: {names} (--output '**' keeps them all)"


def storable(text: str) -> str:
    """Replace what a payload may print, or name a file, and no message or database text may hold: NUL, half characters."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def _some(lines: Sequence[str], most: int = 5) -> str:
    more = f" and {len(lines) - most} more" if len(lines) > most else ""
    return ", ".join(lines[:most]) + more
