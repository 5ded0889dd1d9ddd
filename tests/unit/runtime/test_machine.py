"""What a process may use of its machine."""

import os
import subprocess
import sys

import psutil

from wms.runtime import machine


def test_memory_is_that_of_the_machine() -> None:
    assert machine.look().memory_mb == psutil.virtual_memory().total // 1024**2


def test_only_processors_that_the_process_may_use_count() -> None:
    one = min(os.sched_getaffinity(0))
    found = subprocess.run(
        [sys.executable, "-c", "from wms.runtime import machine; print(machine.look().cores)"],
        preexec_fn=lambda: os.sched_setaffinity(0, {one}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "1"


def test_a_platform_is_named_without_and_with_its_libc() -> None:
    plain, *with_libc = machine.platforms()
    assert plain == f"{os.uname().sysname}-{os.uname().machine}"
    assert all(name.startswith(f"{plain}-") for name in with_libc)
