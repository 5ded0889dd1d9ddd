"""A call at the other end: its value, its error, its initializer, and modules that are not there."""

import subprocess
import sys
import threading
from pathlib import Path

from wms.client import remote_call
from wms.client.pickled_call import EachOf, pickled


def remotely(directory: Path, raw: bytes) -> tuple[bool, object, str]:
    (directory / remote_call.CALL).write_bytes(raw)
    subprocess.run([sys.executable, "-I", remote_call.__file__], cwd=directory, check=True)
    outcome: tuple[bool, object, str] = remote_call.read((directory / remote_call.OUTCOME).read_bytes())
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
    returned, error, _ = remotely(tmp_path, pickled(threading.Lock, (), {}))
    assert not returned
    assert "what the function returned cannot be sent back" in str(error)


PROGRAM = """
import dataclasses, enum, pathlib, subprocess, sys
from wms.client import remote_call
from wms.client.pickled_call import pickled

LIMIT = 1

@dataclasses.dataclass
class Fit:
    value: float
    made = []
    def within(self): return self.value < LIMIT

class Colour(enum.Enum):
    RED = 1

class Diverged(Exception):
    def __init__(self, step, value):
        super().__init__(f"step {step}: {value}")
        self.step = step

class Full(OSError):
    def __init__(self, path, code):
        super().__init__(code, f"{path} is full", path)

def raises(error): raise error
def fit():
    Fit.made.append(1)
    return [Fit(1.5), Colour.RED, Fit]
def fails(kind, *args): raise kind(*args)

def remotely(function, *args):
    here = pathlib.Path(sys.argv[1])
    (here / remote_call.CALL).write_bytes(pickled(function, args, {}))
    subprocess.run([sys.executable, "-I", remote_call.__file__], cwd=here, check=True)
    return remote_call.read((here / remote_call.OUTCOME).read_bytes())[1]

found, colour, kind = remotely(fit)
assert (found, colour, kind) == (Fit(1.5), Colour.RED, Fit), found
LIMIT = 2
assert found.within() and Fit.made == [], "the class is another now"
error = remotely(fails, Diverged, 3, 0.5)
assert (type(error), str(error), error.step) == (Diverged, "step 3: 0.5", 3), error
error = remotely(fails, Full, "/data", 28)
assert (type(error), error.errno, error.filename, str(error)) == (Full, 28, "/data", "[Errno 28] /data is full: '/data'"), error
assert remotely(lambda: lambda x: x + 1)(1) == 2
from collections import namedtuple
pair = remotely(lambda: [namedtuple("Pair", "a b")(1, n) for n in (2, 3)])
assert pair == [(1, 2), (1, 3)], pair
print("ok")
"""


def test_classes_and_errors_of_the_program_itself_come_back_as_they_are(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ended = subprocess.run(
        [sys.executable, program, tmp_path], capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.stdout, ended.stderr) == ("ok\n", "")
