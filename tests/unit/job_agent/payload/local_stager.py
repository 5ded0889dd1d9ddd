"""A stager without a process of its own, as tests ask it: a thread that serves one socket."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

from services.job_agent.payload.stager import Stager
from services.job_agent.payload.stager_link import StagerLink


@contextlib.contextmanager
def local_stager(
    work: Path, scratch: Path, disk_bytes: int | None = None, owner: int | None = None
) -> Iterator[StagerLink]:
    ours, theirs = socket.socketpair()
    with theirs:
        thread = threading.Thread(target=Stager(theirs, str(work), str(scratch), disk_bytes).serve)
        thread.start()
        link = StagerLink(ours, work.stat().st_dev, owner)
        try:
            yield link
        finally:
            link.close()
            thread.join()
