"""Stagers that lie: what the agent takes of them is bounded, and nothing of it is believed."""

import contextlib
import io
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.job_agent.payload import stager, stager_link
from services.job_agent.payload.stager_link import StagerLink
from wms.errors import Rejected, Unavailable


def ask(
    link: Callable[[StagerLink], object], answer: Callable[[socket.socket], object], owner: int | None = None
) -> None:
    """Ask a stager that receives one request and then does what `answer` does."""
    ours, theirs = socket.socketpair()

    def lie() -> None:
        with theirs:
            received = stager.receive(theirs, 1 << 20)
            # Whoever has heard enough hangs up.
            with contextlib.suppress(ConnectionError):
                answer(theirs)
            for each in received[1] if received else []:
                each.close()

    thread = threading.Thread(target=lie)
    thread.start()
    try:
        link(StagerLink(ours, Path("/var").stat().st_dev, owner))
    finally:
        ours.close()
        thread.join()


def says(data: Any) -> Callable[[socket.socket], object]:
    body = json.dumps(data).encode()
    return lambda link: link.sendall(stager.LENGTH.pack(len(body)) + body)


@pytest.mark.parametrize(
    "answer",
    [
        lambda link: None,
        lambda link: link.sendall(b"\0\0"),
        lambda link: link.sendall(stager.LENGTH.pack(1 << 31)),
        lambda link: link.sendall(stager.LENGTH.pack(4) + b"{}}}"),
        lambda link: link.sendall(stager.LENGTH.pack(200_000) + b"[" * 200_000),
        says([]),
        says(7),
        says({"fault": ["one"]}),
        says({"fault": "text"}),
        says({"failed": 5}),
        says({"chosen": -1}),
        says({"left": ["x"] * 20_000}),
        says({"left": [{"a": 1}]}),
        says({"disk_bytes": "many"}),
    ],
)
def test_an_answer_of_another_form_is_a_stager_that_does_not_answer(
    answer: Callable[[socket.socket], object],
) -> None:
    with pytest.raises(Unavailable):
        ask(lambda link: link.select((), None, (), 9), answer)


def test_its_faults_are_told() -> None:
    with pytest.raises(Rejected, match="too bad"):
        ask(lambda link: link.select((), None, (), 9), says({"fault": ["CODE", "too bad", ""]}))
    with pytest.raises(OSError, match="no space"):
        ask(lambda link: link.select((), None, (), 9), says({"failed": "no space"}))


def test_more_bytes_than_an_archive_may_have_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stager_link, "SLACK", 0)
    ours, theirs = socket.socketpair()

    def flood() -> None:
        with theirs:
            request = stager.receive(theirs, 1 << 20)
            assert request
            stream = request[1][0]
            with stream:
                try:
                    while True:
                        stream.write(bytes(65_536))
                except BrokenPipeError:
                    pass

    thread = threading.Thread(target=flood)
    thread.start()
    link, target = StagerLink(ours, 0, None), io.BytesIO()
    with pytest.raises(Unavailable, match="packs more"):
        link.pack({}, target, 1 << 20, chosen=True)
    assert len(target.getvalue()) <= 1 << 20
    thread.join()
    with pytest.raises(Unavailable):
        link.clear()


def test_an_opened_file_must_be_a_regular_one_of_the_payload_on_its_disk(tmp_path: Path) -> None:
    (tmp_path / "own").touch()
    os.mkfifo(tmp_path / "fifo")

    def sends(path: str, flags: int = os.O_RDONLY) -> Callable[[socket.socket], object]:
        def answer(link: socket.socket) -> None:
            with os.fdopen(os.open(path, flags | os.O_NONBLOCK), "rb", 0) as file:
                stager.send(link, {"found": True}, [file])

        return answer

    for path, owner, words in (
        (f"{tmp_path}/fifo", None, "not a regular file"),
        ("/dev/null", None, "not a regular file"),
        ("/proc/self/status", None, "another user's"),
        (f"{tmp_path}/own", os.geteuid() + 1, "another user's"),
    ):
        with pytest.raises(Rejected, match=words):
            ask(lambda link: link.output("a"), sends(path), owner)


def test_a_dripping_answer_has_one_time_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stager_link, "ANSWER_SECONDS", 0.3)
    over = threading.Event()

    def drips(link: socket.socket) -> None:
        link.sendall(stager.LENGTH.pack(1_000_000))
        while not over.wait(0.02):
            link.sendall(b" ")

    def asks(link: StagerLink) -> None:
        began = time.monotonic()
        try:
            with pytest.raises(Unavailable, match="does not answer"):
                link.clear()
            assert time.monotonic() - began < 5
        finally:
            over.set()

    ask(asks, drips)


def test_descriptors_that_cannot_be_files_are_closed(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, (tmp_path / "file").open("wb") as file:
        directory = os.open(tmp_path, os.O_RDONLY)
        for _ in range(2):
            socket.send_fds(theirs, [stager.LENGTH.pack(2)], [file.fileno(), directory, file.fileno()])
            theirs.sendall(b"{}")
            before = len([*Path("/proc/self/fd").iterdir()])
            with pytest.raises(IsADirectoryError):
                stager.receive(ours, 100)
            assert len([*Path("/proc/self/fd").iterdir()]) == before
            assert ours.recv(2) == b"{}"
        os.close(directory)
