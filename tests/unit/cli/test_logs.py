"""Output that is followed: each byte once, and what is left out is said."""

import asyncio
import itertools
from typing import Any, cast

import pytest
from msgspec.structs import replace

from tests.unit.messages.examples import FULL
from wms.cli import logs
from wms.cli.logs import _View, in_words
from wms.client import Client
from wms.messages.replies import JobDetail, JobOutput
from wms.output_text import decoded

DETAIL = cast("JobDetail", FULL["job-detail"])
STORED = 4_096


class Printing:
    """A job that prints a part between two looks, and ends; of what it printed the last bytes are stored, and some are never seen."""

    def __init__(self, *parts: bytes) -> None:
        self._parts = parts
        self._looks = itertools.count(1)
        self._printed = b""
        self._is_live = True

    async def show(self, job_id: int) -> JobDetail:
        """Return the job, which has printed one more part."""
        look = next(self._looks)
        self._printed = b"".join(self._parts[:look])
        self._is_live = look < len(self._parts)
        return replace(DETAIL, job=replace(DETAIL.job, state="Running" if self._is_live else "Done"))

    async def peek(
        self, job_id: int, stream: str, *, offset: int | None, limit: int, raw: bool, whole: bool
    ) -> JobOutput:
        """Return a piece, as the agent of a running job and the job manager of an ended one do."""
        size = len(self._printed)
        first = 0 if self._is_live else max(0, size - STORED)
        begin = max(first, size - limit if offset is None else offset)
        text, used = decoded(self._printed[begin : begin + limit], is_end=not self._is_live)
        said: dict[str, Any] = {"query_id": "q", "client": "c", "job_id": job_id, "stream": stream}
        return JobOutput(
            **said, offset=begin, size=size, text=text, live=self._is_live, end=begin + used, whole=whole
        )


def followed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *parts: bytes, size: int = 16_384
) -> tuple[str, str]:
    """Return what is printed of a job that prints these parts, and the notes."""
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.0)
    job = Printing(*parts)
    view = _View(cast("Client", job), 7, "stdout", quiet=True, raw=False, as_json=False)

    async def follow() -> int:
        return await view.follow(await job.show(7), size)

    assert asyncio.run(follow()) == 0
    return tuple(capsys.readouterr())  # type: ignore[return-value]


def test_lines_of_any_bytes_are_shown_once_each(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    latin = [f"{n:03} caf\u00e9\n".encode("latin-1") for n in range(40)]
    shown = "".join(f"{n:03} caf\ufffd\n" for n in range(40))
    assert followed(capsys, monkeypatch, *latin) == (shown, "")
    same = [b"the same\n" * 500] * 4
    assert followed(capsys, monkeypatch, *same[:2], b"the same\n" * 300) == ("the same\n" * 1_300, "")
    whole = "a \u20ac\n".encode() * 9
    assert followed(capsys, monkeypatch, *(whole[n : n + 1] for n in range(len(whole)))) == (
        "a \u20ac\n" * 9,
        "",
    )


def test_what_came_too_fast_for_the_end_is_said_to_be_left_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printed, notes = followed(capsys, monkeypatch, b"first\n", b"x" * 10_000)
    assert printed == "first\n" + "x" * STORED + "\n"
    assert "5,904 bytes are left out here" in notes


def test_more_than_one_answer_has_is_caught_up_with_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    much = b"0123456789\n" * 20_000
    printed, notes = followed(capsys, monkeypatch, b"first\n", much, b"last\n")
    assert (printed, notes) == (f"first\n{much.decode()}last\n", "")


@pytest.mark.parametrize(
    ("output", "size", "shown", "notes"),
    [
        (b"one\ntwo\nthree\n", 100, "one\ntwo\nthree\n", "--- stdout\n"),
        (b"one\ntwo\nthree\n", 8, "three\n", "--- stdout, the last 6 of 14 bytes\n"),
        (b"0123456789", 4, "6789\n", "--- stdout, the last 4 of 10 bytes, from within a line\n"),
    ],
)
def test_an_end_begins_with_a_whole_line_or_says_that_it_does_not(
    capsys: pytest.CaptureFixture[str], output: bytes, size: int, shown: str, notes: str
) -> None:
    job = Printing(output, b"")

    async def tail() -> None:
        await job.show(7)
        await _View(cast("Client", job), 7, "stdout", quiet=False, raw=False, as_json=False).tail(size)

    asyncio.run(tail())
    assert tuple(capsys.readouterr()) == (shown, notes)


def test_another_user_who_ordered_a_change_is_named() -> None:
    line = replace(DETAIL.history[-1], reason="KILLED_BY_USER", text="enough", source="user boss")
    assert in_words(line, "alice").endswith("KILLED_BY_USER: enough (by user boss)")
    assert in_words(line, "boss").endswith("KILLED_BY_USER: enough")
