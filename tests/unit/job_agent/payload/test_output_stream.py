"""What a payload prints, in files of limited size."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from services.job_agent.payload.output_stream import SEGMENTS_KEPT, OutputStream, head_bytes, segment_bytes

CAPTURE = 800
Print = Callable[[bytes], OutputStream]


@pytest.fixture
def printed(tmp_path: Path) -> Print:
    """Return a function that has a payload print data and end, to the file `out`."""

    def make(data: bytes) -> OutputStream:
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        stream = OutputStream(reading, str(tmp_path / "out"), CAPTURE)
        os.write(writing, data)
        assert stream.pump()
        os.close(writing)
        assert not stream.pump()
        stream.drain()
        return stream

    return make


def test_what_is_not_printed_makes_no_file(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    stream = OutputStream(reading, str(tmp_path / "out"), CAPTURE)
    assert stream.pump(), "nothing yet is no end"
    os.close(writing)
    stream.drain()
    assert list(tmp_path.iterdir()) == []


def test_a_long_output_keeps_its_beginning_and_its_last_segments(printed: Print, tmp_path: Path) -> None:
    stream = printed(bytes(range(250)) * 40)
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert sizes.pop("out") == head_bytes(CAPTURE) == 400
    assert len(sizes) == SEGMENTS_KEPT
    assert max(sizes.values()) == segment_bytes(CAPTURE) == 100
    assert stream.overflow > 9_000


def test_a_disk_that_takes_nothing_stops_the_files_and_not_the_payload(
    printed: Print, tmp_path: Path
) -> None:
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    printed(b"text")
    assert not (tmp_path / "elsewhere").exists(), "no link is followed"
