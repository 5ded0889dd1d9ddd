"""What the tests let parsing processes do."""

import os
import signal
import time
from pathlib import Path

from wms.errors import Rejected


def echoed(*arguments: bytes) -> list[bytes]:
    return [*arguments, str(os.getpid()).encode()]


def refused(_: bytes) -> list[bytes]:
    raise Rejected("BAD", "is bad", "mend it", ("line 1", "line 2"))


def endless(_: bytes) -> list[bytes]:
    while True:
        pass


def large(_: bytes) -> list[bytes]:
    return [bytes(1024**3)]


def asleep(_: bytes) -> list[bytes]:
    time.sleep(1_000)
    return []


def dead(_: bytes) -> list[bytes]:
    os.kill(os.getpid(), signal.SIGSEGV)
    return []


def printed(_: bytes) -> list[bytes]:
    print("a library says something")
    return [b"done"]


def locked(path: bytes) -> list[bytes]:
    """Return once somebody writes into the fifo at `path`."""
    return [Path(os.fsdecode(path)).read_bytes()]
