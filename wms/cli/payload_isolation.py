"""How payloads are isolated, in words: on this machine, by the job agent's own check, and in a pilot, by its reports."""

import subprocess
import sys

CHECK_SECONDS = 20.0


def isolation_fault(mode: str) -> str:
    """Return why payloads are not isolated on this machine, by the agent's own check; empty if they are.

    `mode` is `none`, `auto` or `required`, as the pilots are told.
    """
    if mode == "none":
        return "as asked for"
    argv = [sys.executable, "-m", "services.job_agent.payload.isolation"]
    try:
        judged = subprocess.run(argv, capture_output=True, check=True, timeout=CHECK_SECONDS, text=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"it could not be found out: {type(error).__name__}"
    return judged.stdout.strip()


def isolation_words(fault: str) -> str:
    """Return what jobs see of each other as a sentence. `fault` is why they are not isolated, empty if they are."""
    if fault:
        return (
            f"jobs are not isolated here ({fault}): they can read this system's keys and each other's files"
        )
    return "jobs are isolated: each sees its own files and processes alone"


def reported_words(isolation: str) -> str:
    """Return as a phrase how a pilot isolates payloads. `isolation` is what the pilot reported: `namespaces`, `none`, or a newer word."""
    known = {
        "namespaces": "in namespaces: each payload sees its own files and processes alone",
        "none": "none: payloads run as plain processes of the pilot's account",
    }
    return known.get(isolation, isolation)
