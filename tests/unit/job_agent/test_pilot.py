"""What a pilot does before and after its agent runs: it takes its token out of reach, and says why it failed."""

from pathlib import Path
from typing import NoReturn

import pytest

from services.job_agent.payload import shepherd
from services.job_agent.pilot import crash_words, take_token_file
from wms.dispatch.port import LAST_LINE_LIMIT
from wms.errors import Rejected

PR_GET_DUMPABLE = 3


@pytest.fixture
def token_file(tmp_dir: Path) -> Path:
    return tmp_dir / "token"


def test_the_token_file_is_taken_and_is_gone(token_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []
    monkeypatch.setattr(shepherd, "prctl", lambda *numbers: asked.append(numbers))
    token_file.write_text("a.b.c 0123\n")
    assert take_token_file(token_file) == "a.b.c 0123\n"
    assert not token_file.exists()
    assert asked, "payloads run as the same user: they must not read this process's memory"


@pytest.mark.parametrize("content", [None, b"\xff\xfe x"])
def test_a_pilot_without_a_token_file_is_refused(
    token_file: Path, content: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shepherd, "prctl", lambda *_: None)
    if content is not None:
        token_file.write_bytes(content)
    with pytest.raises(Rejected) as caught:
        take_token_file(token_file)
    assert caught.value.code == "NO_TOKEN"


def test_a_pilots_crash_is_one_plain_sentence() -> None:
    words = crash_words(ExceptionGroup("unhandled errors", [ExceptionGroup("more", [_raised()])]))
    assert words.startswith("the pilot ended through a fault of its own: AttributeError: no such ")
    assert "(test_pilot.py, line " in words
    assert len(words) < LAST_LINE_LIMIT


def _raised() -> Exception:
    try:
        _raise(AttributeError("no such\n thing " + "word " * 100))
    except AttributeError as error:
        return error


def _raise(error: Exception) -> NoReturn:
    raise error
