"""The table of results: a row for each job, with its parameters, how it ended, and what it used. For pandas, and as CSV."""

from typing import Any

from wms.messages.replies import JobLine, JobResult

PARAMETER = "parameters."
"""The prefix of columns with a job's own values of its array's parameter lists."""


def result_row(job: JobLine) -> dict[str, Any]:
    """Return a job as a row: values by column, None for what is not known. Times are aware, durations in seconds, memory in bytes."""
    result = job.result or JobResult()
    return {
        "job_id": job.job_id,
        "name": job.name,
        "group": job.job_group,
        "owner": job.owner,
        "state": job.state,
        "reason": job.reason,
        "site": job.site,
        "ce": result.ce,
        "attempt": result.attempt,
        "exit_code": result.exit_code,
        "signal": result.signal,
        "submitted_at": job.submitted_at,
        "started_at": result.started_at,
        "ended_at": result.ended_at,
        "wall_seconds": result.wall_seconds,
        "cpu_seconds": result.cpu_seconds,
        "max_rss_bytes": result.max_rss_bytes,
        "array_index": result.array_index,
        **{PARAMETER + name: value for name, value in result.parameters.items()},
    }
