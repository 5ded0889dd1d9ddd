"""How an agent begins and what it says when it crashes."""

from typing import NoReturn

from services.job_agent.__main__ import crash_words
from wms.dispatch.port import LAST_LINE_LIMIT


def test_a_pilots_crash_is_one_plain_sentence() -> None:
    words = crash_words(ExceptionGroup("unhandled errors", [ExceptionGroup("more", [_raised()])]))
    assert words.startswith("the pilot ended through a fault of its own: AttributeError: no such ")
    assert "(test_main.py, line " in words
    assert len(words) < LAST_LINE_LIMIT


def _raised() -> Exception:
    try:
        _raise(AttributeError("no such\n thing " + "word " * 100))
    except AttributeError as error:
        return error


def _raise(error: Exception) -> NoReturn:
    raise error
