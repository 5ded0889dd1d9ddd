"""Runs `wms demo` and `wms replay` on a system of their own: the audit at the end, and the errors if the run fails."""

import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from wms.cli.session import run_async
from wms.embedded.own_system import RunFailed

T = TypeVar("T")


def run_or_tell(work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of a run of `wms demo` or `wms replay`. If it fails, print what went wrong on standard error and return None."""
    try:
        return run_async(work)
    except RunFailed as failed:
        sys.stderr.write("".join(f"wms: {line}\n" for line in failed.findings))
        return None


async def audited(postgres_url: str) -> str:
    """Check the invariants of a database (`wms audit`), and return the summary line. Raise RunFailed, with the report, if a check fails."""
    from wms.audit import audit

    lines = (report := await audit(postgres_url)).text().splitlines()
    if not report.ok:
        raise RunFailed("the audit failed", *lines)
    return lines[-1]
