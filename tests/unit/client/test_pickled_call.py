"""Calls of the executor: what can be sent to a site, and what comes back of it."""

import pickle
import sys

import pytest

from wms.client.pickled_call import CALL_BYTES, EachOf, pickled, unpickled
from wms.errors import Rejected


def of_the_program() -> None:
    """Stand for a function of the program itself."""


def test_what_cannot_be_sent_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(Rejected, match=r"CANNOT_BE_SENT(.|\n)*cloudpickle"):
        pickled(lambda: 1, (), {})
    # The shape of a program's own function, which the library writes by its name alone.
    monkeypatch.setattr(of_the_program, "__module__", "__main__")
    with pytest.raises(Rejected, match="of_the_program is defined in the program itself"):
        pickled(of_the_program, (), {})
    with pytest.raises(Rejected, match="CALL_TOO_LARGE"):
        pickled(len, (bytes(CALL_BYTES),), {})


def test_a_chunk_needs_nothing_of_this_library_at_the_site() -> None:
    raw = pickled(EachOf(pow), ([(2, 3), (3, 2)],), {})
    assert b"wms" not in raw
    assert pickle.loads(raw) == (pow, [(2, 3), (3, 2)], None)
    assert EachOf(pow)([(2, 3), (3, 2)]) == [8, 9]


def test_an_outcome_that_cannot_be_read_here_names_its_job() -> None:
    assert unpickled(pickle.dumps((True, 1, "")), 7) == (True, 1, "")
    for raw in (b"", b"cno_such_module\nf\n.", pickle.dumps(1), pickle.dumps((False, 1, ""))):
        with pytest.raises(Rejected, match="what job 7 returned cannot be read here"):
            unpickled(raw, 7)
