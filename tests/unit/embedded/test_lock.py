"""The lock of a system's directory."""

import errno
import os
from pathlib import Path

import pytest

from wms.embedded.lock import DirectoryLock, holder


async def test_a_lock_that_could_not_be_written_is_free_for_the_next_attempt(
    tmp_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = DirectoryLock(tmp_dir / "lock")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="no space"):
            lock.acquire()
    lock.acquire()
    assert holder(tmp_dir / "lock") == os.getpid()
    lock.release()
