"""Calls of the executor: what can be sent to a site, and what comes back of it."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from wms.client import remote_call
from wms.client.executor import CALL_BYTES, pickled
from wms.errors import Rejected


def remotely(directory: Path, raw: bytes) -> tuple[bool, object, str]:
    (directory / remote_call.CALL).write_bytes(raw)
    subprocess.run([sys.executable, "-I", remote_call.__file__], cwd=directory, check=True)
    outcome: tuple[bool, object, str] = pickle.loads((directory / remote_call.OUTCOME).read_bytes())
    return outcome


def test_what_cannot_be_sent_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(Rejected, match=r"CANNOT_BE_SENT(.|\n)*cloudpickle"):
        pickled(lambda: 1, (), {})
    # The shape of a program's own function, which the library writes by its name alone.
    monkeypatch.setattr(remotely, "__module__", "__main__")
    with pytest.raises(Rejected, match="defined in the program itself"):
        pickled(remotely, (), {})
    with pytest.raises(Rejected, match="CALL_TOO_LARGE"):
        pickled(len, (bytes(CALL_BYTES),), {})
