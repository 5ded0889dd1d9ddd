"""The result of a job sent directly as a batch job, by its exit code, its element's report, and the files it left."""

from pathlib import Path
from typing import NamedTuple

from wms.db.direct_job import DirectJob
from wms.dispatch.direct import NEVER_BEGAN, STDERR, STDOUT, WORK, DirectEnd
from wms.dispatch.port import PilotSighting
from wms.errors import Rejected
from wms.job.job import TEXT_LIMIT, Outcome
from wms.job.reasons import Code
from wms.job.signal_words import EXIT_CODE_OF_SIGNAL, signal_hint, signal_name
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.messages.reports import Result, Usage
from wms.transfer import SandboxStore, keep, select

TAIL_BYTES = 4_000
_LIMITS = {"timeout": Code.WALL_LIMIT, "deadline": Code.WALL_LIMIT, "out_of_memory": Code.MEMORY_LIMIT}
"""The words by which batch systems name an exceeded limit, each with the reason code that users see."""


class DirectVerdict(NamedTuple):
    """How an attempt of a directly sent job ended: the outcome, a code, and a text for its user."""

    outcome: Outcome
    code: Code
    text: str = ""


def verdict(
    job: DirectJob, description: JobDescription, seen: PilotSighting, end: DirectEnd
) -> DirectVerdict:
    """Return how an attempt of a directly sent job ended.

    `seen` is the batch system's last report on the batch job. `end` is what the batch job wrote of its own end, such as its
    exit code.
    """
    if job.stop_requested:
        return DirectVerdict("killed", Code.KILLED_BY_USER, f"{job.stop_requested} was ordered")
    if not has_begun(job, end, seen):
        return _not_begun(job, seen)
    limit = next((code for word, code in _LIMITS.items() if word in seen.reason.lower()), None)
    if limit is not None:
        return DirectVerdict("failed", limit, seen.reason)
    if end.ended_for == "lease":
        return DirectVerdict("lost", Code.LEASE_EXPIRED, "its lease was not renewed")
    if end.ended_for or end.exit_code is None:
        return DirectVerdict(
            "lost", seen.lost or Code.PILOT_STOPPED, seen.reason or "the batch system ended it"
        )
    return _sent(_by_exit_code(end.exit_code, description), seen)


def _not_begun(job: DirectJob, seen: PilotSighting) -> DirectVerdict:
    if seen.staging:
        # A job that was taken for Running cannot be held any more.
        outcome: Outcome = "lost" if job.state == "Matched" else "failed"
        code = Code.FILE_CORRUPT if seen.staging == "corrupt" else Code.FILE_UNAVAILABLE
        return DirectVerdict(outcome, code, seen.reason)
    text = f"the batch job ended before it began: {seen.reason or seen.state}"
    return DirectVerdict("lost", Code.AGENT_ERROR, text)


def _sent(found: DirectVerdict, seen: PilotSighting) -> DirectVerdict:
    """Return `found`, the verdict by the exit code; a failure if the middleware could not send the outputs of a job that ended well."""
    if found.outcome == "done" and seen.staging == "failed":
        return DirectVerdict("failed", Code.OUTPUT_FAILED, seen.reason)
    return found


def has_begun(job: DirectJob, end: DirectEnd, seen: PilotSighting) -> bool:
    """Return whether the program of a directly sent job has started, by the job's state or the batch job's own record (`end`).

    It has not if the element reports a corrupt input (`seen`), even if the batch job ran.
    """
    if seen.staging == "corrupt":
        return False
    return job.state != "Matched" or (end.has_begun and end.exit_code != NEVER_BEGAN)


def _by_exit_code(code: int, description: JobDescription) -> DirectVerdict:
    if code in description.success_exit_codes:
        return DirectVerdict("done", Code.DONE)
    if code in (126, 127):
        return DirectVerdict(
            "failed", Code.NOT_STARTED, f"{description.executable} could not be started (exit code {code})"
        )
    if code > EXIT_CODE_OF_SIGNAL:
        number = code - EXIT_CODE_OF_SIGNAL
        return DirectVerdict("failed", Code.SIGNAL, f"ended by {signal_name(number)}{signal_hint(number)}")
    return DirectVerdict("failed", Code.EXIT_CODE, f"exit code {code}")


def result_of(
    job: DirectJob, description: JobDescription, seen: PilotSighting, end: DirectEnd, store: SandboxStore
) -> Result:
    """Store the outputs of an ended job in the sandbox store, and return the result to report. It blocks, so call it in a thread.

    Outputs that cannot be stored make the result a failure. Raise Unavailable if the store does not answer.
    """
    told, began = verdict(job, description, seen, end), has_begun(job, end, seen)
    output, refused, unmatched = _stored(store, end.directory, description) if began else (None, "", ())
    text = "; ".join(
        filter(None, (told.text, f"no file matches {', '.join(unmatched[:5])}" if unmatched else "", refused))
    )
    code, outcome = told.code, told.outcome
    if outcome == "done" and refused:
        outcome, code = "failed", Code.OUTPUT_FAILED
    elif outcome == "done" and unmatched:
        code = Code.OUTPUT_MISSING
    exit_code = end.exit_code if began and end.exit_code is not None and end.exit_code <= 128 else None
    return Result(
        job_id=job.job_id,
        epoch=job.epoch,
        outcome="lost" if outcome == "withdrawn" else outcome,
        code=code,
        text=text[:TEXT_LIMIT],
        exit_code=exit_code,
        signal=end.exit_code - 128 if code is Code.SIGNAL and end.exit_code else None,
        usage=Usage(
            cpu_user_seconds=end.cpu_user_seconds,
            cpu_system_seconds=end.cpu_system_seconds,
            wall_seconds=end.wall_seconds,
        ),
        output_sha256=output.sha256 if output else None,
        output_bytes=output.size if output else 0,
        stdout_tail=_tail(end.directory / STDOUT),
        stderr_tail=_tail(end.directory / STDERR),
        began=began,
        retries=description.retries_after(code, exit_code),
    )


def refused_input(job: DirectJob, fault: Rejected) -> Result:
    """Return the result of a job that failed before its start because its inputs cannot be had or are too large; `fault` is the reason."""
    return Result(
        job_id=job.job_id,
        epoch=job.epoch,
        outcome="failed",
        code=Code.DISK_LIMIT if fault.code == Code.DISK_LIMIT else Code.INPUT_FAILED,
        text=str(fault)[:TEXT_LIMIT],
        began=False,
    )


def _stored(
    store: SandboxStore, directory: Path, description: JobDescription
) -> tuple[SandboxRef | None, str, tuple[str, ...]]:
    """Store what the job printed, and the files that its output patterns match, from the batch job's `directory`.

    Return the stored sandbox, a text on why files are not stored (empty if all are), and the patterns that matched no file.
    """
    printed: dict[str, Path | bytes] = {
        STDOUT: _head(directory / STDOUT, description.stdout_limit),
        STDERR: _head(directory / STDERR, description.stderr_limit),
    }
    try:
        chosen = select(directory / WORK, description.output_sandbox)
        files = {name: path for name, path in chosen.files.items() if name not in printed}
        return keep(store, {**files, **printed}), "", chosen.unmatched
    except (Rejected, OSError) as error:
        return keep(store, printed), f"outputs not kept: {error}", ()


def _head(path: Path, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(limit)
    except OSError:
        return b""


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - TAIL_BYTES))
            text = file.read(TAIL_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return text.replace("\0", "\ufffd")
