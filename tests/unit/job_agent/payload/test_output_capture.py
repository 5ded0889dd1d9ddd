"""What a payload prints: bounded, kept at both ends, and read by nobody's link."""

import os
import random
from pathlib import Path

import pytest

from services.job_agent.payload.output_capture import Captured
from services.job_agent.payload.output_stream import OutputStream, head_bytes


def pumped(path: Path, data: bytes, capture: int, pieces: random.Random) -> OutputStream:
    """Bring the data through a pipe in pieces of any size."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    stream = OutputStream(reading, str(path), capture)
    while data:
        written = os.write(writing, data[: pieces.randint(1, 5_000)])
        data = data[written:]
        assert stream.pump()
    os.close(writing)
    stream.drain()
    return stream


@pytest.mark.parametrize("capture", [1, 7, 64, 1000, 1001, 4096])
@pytest.mark.parametrize("printed", [0, 1, 31, 32, 500, 1000, 1001, 1100, 4096, 9_999, 60_000])
def test_what_is_kept_is_the_beginning_and_the_end(tmp_path: Path, capture: int, printed: int) -> None:
    rng = random.Random(capture * 100_003 + printed)
    data = rng.randbytes(printed)
    path = tmp_path / "out"
    pumped(path, data, capture, rng)
    captured = Captured(path, capture)
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= capture * 9 // 8 + 8
    whole = captured.finish()
    kept = whole.read_bytes() if whole else b""
    if printed <= capture:
        assert kept == data
    else:
        half = head_bytes(capture)
        rest = capture - half
        marker = f"\n[... {printed - capture} bytes left out ...]\n".encode()
        assert kept == data[:half] + marker + data[printed - rest :]
    assert captured.read(10**6).total == printed
    last = captured.read(min(capture // 2, 100) or 1)
    assert data[last.offset : last.next_offset] == last.data
    assert last.next_offset == printed


@pytest.mark.parametrize("printed", [0, 100, 1500, 50_000])
def test_reading_on_and_on_gives_all_that_is_kept_in_order(tmp_path: Path, printed: int) -> None:
    rng = random.Random(printed)
    data = rng.randbytes(printed)
    pumped(tmp_path / "out", data, 1000, rng)
    captured = Captured(tmp_path / "out", 1000)
    offset, got = 0, 0
    while (chunk := captured.read(97, offset)).data:
        assert chunk.offset >= offset
        assert data[chunk.offset : chunk.next_offset] == chunk.data
        offset = chunk.next_offset
        got += len(chunk.data)
    assert offset == printed
    assert got >= min(printed, 1000)
    assert captured.read(10, printed + 5).data == b""


def test_a_disk_that_fails_ends_the_capture_and_not_the_payload(tmp_path: Path) -> None:
    stream = pumped(tmp_path / "no" / "such" / "directory", b"x" * 10_000, 1000, random.Random(1))
    assert stream.overflow > 0
    assert list(tmp_path.iterdir()) == []


def test_text_that_is_no_utf8_is_shown_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"\xff\xfe" + "größe".encode())
    assert Captured(tmp_path / "out", 1000).tail(100) == ("\ufffd\ufffdgröße", 0)
    assert Captured(tmp_path / "none", 1000).tail(100) == ("", 0)
    # Of a character that is cut at the beginning nothing is told: the end begins after it.
    assert Captured(tmp_path / "out", 1000).tail(4) == ("ße", 6)


def test_what_a_payload_makes_of_its_output_file_is_read_within_bounds(tmp_path: Path) -> None:
    captured = Captured(tmp_path / "out", 1000)
    pumped(tmp_path / "out", b"x" * 100, 1000, random.Random(1))
    with (tmp_path / "out").open("r+b") as file:
        file.truncate(200 << 30)
    with (tmp_path / "out.3").open("wb") as file:
        file.truncate(2 << 30)
    whole = captured.finish()
    assert whole is not None
    assert whole.stat().st_size <= 1000 + 100
    assert len(captured.read(1 << 30).data) <= 1000 + 100


def test_a_link_or_a_pipe_in_the_place_of_an_output_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tmp_path / "out").symlink_to(secret)
    os.mkfifo(tmp_path / "err")
    for name in ("out", "err"):
        captured = Captured(tmp_path / name, 1000)
        assert captured.finish() is None
        assert captured.read(100).data == b""
    stream = pumped(tmp_path / "err", b"x" * 10, 1000, random.Random(1))
    assert stream.overflow == 0
