"""A call at the other end: its value, its error, its initializer, and modules that are not there."""

import pickle
import subprocess
import sys
from pathlib import Path

from wms.client import remote_call
from wms.client.pickled_call import EachOf, pickled


def remotely(directory: Path, raw: bytes) -> tuple[bool, object, str]:
    (directory / remote_call.CALL).write_bytes(raw)
    subprocess.run([sys.executable, "-I", remote_call.__file__], cwd=directory, check=True)
    outcome: tuple[bool, object, str] = pickle.loads((directory / remote_call.OUTCOME).read_bytes())
    return outcome


def test_a_call_is_made_elsewhere_and_its_value_comes_back(tmp_path: Path) -> None:
    assert remotely(tmp_path, pickled(divmod, (7, 2), {})) == (True, (3, 1), "")
    assert remotely(tmp_path, pickled(sorted, ([1, 2],), {"reverse": True})) == (True, [2, 1], "")


def test_the_calls_of_a_chunk_are_made_in_their_order(tmp_path: Path) -> None:
    rows = [(7, 2), (9, 4)]
    assert remotely(tmp_path, pickled(EachOf(divmod), (rows,), {})) == (True, [(3, 1), (2, 1)], "")


def test_the_initializer_is_called_first(tmp_path: Path) -> None:
    (tmp_path / remote_call.INITIALIZER).write_bytes(pickled(sys.setrecursionlimit, (777,), {}))
    assert remotely(tmp_path, pickled(sys.getrecursionlimit, (), {})) == (True, 777, "")
    (tmp_path / remote_call.INITIALIZER).write_bytes(pickled(sys.setrecursionlimit, (-1,), {}))
    returned, error, trace = remotely(tmp_path, pickled(sys.getrecursionlimit, (), {}))
    assert (returned, type(error)) == (False, ValueError)
    assert "INITIALIZER" in trace


def test_an_error_comes_back_with_its_traceback(tmp_path: Path) -> None:
    returned, error, trace = remotely(tmp_path, pickled(divmod, (7, 0), {}))
    assert (returned, type(error)) == (False, ZeroDivisionError)
    assert "Traceback" in trace


def test_a_module_that_is_not_there_is_named_with_the_remedy(tmp_path: Path) -> None:
    raw = b"cno_such_module\nf\n."
    returned, error, _ = remotely(tmp_path, raw)
    assert not returned
    assert "no_such_module" in str(error)
    assert "files=[" in str(error)


def test_a_value_that_cannot_be_sent_back_is_told(tmp_path: Path) -> None:
    returned, error, _ = remotely(tmp_path, pickled(memoryview, (b"x",), {}))
    assert not returned
    assert "what the function returned cannot be sent back" in str(error)
