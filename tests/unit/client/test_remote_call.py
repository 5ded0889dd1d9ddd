"""A call at the other end: its value, its error, and modules that are not there."""

from pathlib import Path

from tests.unit.client.test_executor import remotely
from wms.client.executor import pickled


def test_a_call_is_made_elsewhere_and_its_value_comes_back(tmp_path: Path) -> None:
    assert remotely(tmp_path, pickled(divmod, (7, 2), {})) == (True, (3, 1), "")


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
