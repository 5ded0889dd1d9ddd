"""Jobs that run when a system on one machine ends: they may save what they need, unless whoever ends it hurries."""

import asyncio
import time
from pathlib import Path

import pytest

from wms.client import Client, JobDescription
from wms.embedded.system import System

SAVES = """trap 'sleep 10; echo saved > "$0"; exit 0' TERM; echo > "$0"; while :; do sleep 0.1; done"""
"""Saves in the file that it is given, longer after SIGTERM than any other part of a system has to end."""


async def end_beside_a_job(place: Path, *, hurried: bool) -> tuple[str, float]:
    """Return what a job saved that ran when a system ended, and how many seconds the end took."""
    saved = place / "saved"
    async with System(place / "system", durable=False, slots=1, pilots={"isolation": "none"}) as system:
        async with Client.connect(system.layout.root, timeout=60) as client:
            await client.submit(JobDescription(executable="/bin/sh", arguments=("-c", SAVES, str(saved))))
            while not saved.exists():
                await asyncio.sleep(0.05)
        if hurried:
            system.hurry()
        began = time.monotonic()
    return saved.read_text().strip(), time.monotonic() - began


@pytest.mark.slow
async def test_a_job_may_save_what_it_needs(tmp_path: Path) -> None:
    saved, seconds = await end_beside_a_job(tmp_path, hurried=False)
    assert saved == "saved"
    assert seconds > 10


@pytest.mark.slow
async def test_who_hurries_waits_for_no_job(tmp_path: Path) -> None:
    saved, seconds = await end_beside_a_job(tmp_path, hurried=True)
    assert saved == ""
    assert seconds < 10
