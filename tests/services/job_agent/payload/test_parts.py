"""The parts of a payload without a process: capture, limits, environment, the looks at /proc and at disks."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from services.job_agent.payload import shepherd
from services.job_agent.payload.environment import environment_of
from services.job_agent.payload.limits import PayloadLimits, PayloadUsage, limits_of, nearness, size, struck
from services.job_agent.payload.output_capture import Captured
from services.job_agent.payload.spare_workdirs import SpareWorkdirs
from services.job_agent.payload.usage_sampling import (
    Tree,
    disk_bytes,
    look,
    proportional_bytes,
    unlinked_bytes,
)
from wms.ids import Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code
from wms.jobdesc.description import JobDescription


def pumped(path: Path, data: bytes, capture: int, pieces: random.Random) -> shepherd.Stream:
    """Bring the data through a pipe in pieces of any size."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    stream = shepherd.Stream(reading, str(path), capture)
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
        half = shepherd.head_bytes(capture)
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
    assert Captured(tmp_path / "out", 1000).text(100) == "\ufffd\ufffdgröße"
    assert Captured(tmp_path / "none", 1000).text(100) == ""


def test_limits_come_from_the_description() -> None:
    limits = limits_of(JobDescription(executable="x", cpu_time=60, memory_mb=2048, disk_mb=10, wall_time=90))
    assert (limits.cpu_seconds, limits.wall_seconds) == (60, 90)
    assert (limits.memory_bytes, limits.disk_bytes) == (2 << 30, 10 << 20)
    open_ended = limits_of(JobDescription(executable="x"))
    assert (limits.living, limits.tasks) == (1_000, 4_000)
    assert limits_of(JobDescription(executable="x", processors=8)).living == 8_000
    assert (open_ended.wall_seconds, open_ended.memory_bytes, open_ended.disk_bytes) == (None, None, None)


@pytest.mark.parametrize(
    ("usage", "code", "text"),
    [
        (
            PayloadUsage(memory_bytes=2_254_857_830),
            Code.MEMORY_LIMIT,
            "used 2.1 GiB of the 2.0 GiB of memory asked for",
        ),
        (
            PayloadUsage(disk_bytes=12 << 20),
            Code.DISK_LIMIT,
            "used 12.0 MiB of the 10.0 MiB of disk asked for",
        ),
        (
            PayloadUsage(processes=1_001),
            Code.PROCESS_LIMIT,
            "had 1,001 processes of the 1,000 that it may have",
        ),
        (
            PayloadUsage(cpu_seconds=601),
            Code.CPU_LIMIT,
            "used 10.0 min of the 10.0 min of CPU time asked for",
        ),
    ],
)
def test_the_limit_that_struck_is_named(usage: PayloadUsage, code: Code, text: str) -> None:
    limits = PayloadLimits(memory_bytes=2 << 30, disk_bytes=10 << 20, cpu_seconds=600)
    reason = struck(limits, usage)
    assert reason
    assert (reason.code, reason.text) == (code, text)
    assert nearness(limits, usage) > 1
    assert struck(PayloadLimits(living=1_001), usage) is None


def test_at_a_limit_is_within_it() -> None:
    limits = PayloadLimits(memory_bytes=100, disk_bytes=100, cpu_seconds=1)
    assert struck(limits, PayloadUsage(memory_bytes=100, disk_bytes=100, cpu_seconds=1)) is None
    assert nearness(limits, PayloadUsage(memory_bytes=50)) == 0.5


def test_sizes_for_people() -> None:
    assert [size(n) for n in (0, 1023, 1024, 1.5 * 1024**2, 2.1 * 1024**3)] == [
        "0 B", "1023 B", "1.0 KiB", "1.5 MiB", "2.1 GiB"
    ]  # fmt: skip


def test_the_environment_passes_only_what_is_named() -> None:
    agent = {"PATH": "/bin", "LANG": "de_DE", "WMS_TOKEN": "t", "SECRET": "s", "X509_CERT_DIR": "/certs"}
    made = environment_of(
        agent=agent, user={"A": "1", "WMS_SITE": "forged", "HOME": "/mine"}, job_id=JobId(7), epoch=Epoch(2),
        site=SiteName("S"), pilot_id=PilotId("p"), work=Path("/w"), scratch=Path("/t"), passed=("X509_CERT_DIR",),
    )  # fmt: skip
    assert made == {
        "PATH": "/bin", "LANG": "de_DE", "X509_CERT_DIR": "/certs", "A": "1", "HOME": "/mine", "PWD": "/w", "TMPDIR": "/t",
            "PYTHONUNBUFFERED": "1",
        "WMS_JOB_ID": "7", "WMS_EPOCH": "2", "WMS_SITE": "S", "WMS_PILOT": "p", "WMS_PROCESSORS": "1", "WMS_WORK": "/w", "WMS_SCRATCH": "/t",
    }  # fmt: skip


def test_a_directory_left_as_it_was_is_the_next_one(tmp_path: Path) -> None:
    spares = SpareWorkdirs(tmp_path, ("work", "tmp"))
    spares.make(tmp_path / "1")
    made = (tmp_path / "1").stat().st_ino
    assert spares.keep(tmp_path / "1")
    assert not (tmp_path / "1").exists()
    spares.make(tmp_path / "2")
    assert (tmp_path / "2").stat().st_ino == made
    assert sorted(each.name for each in (tmp_path / "2").iterdir()) == ["tmp", "work"]
    spares.make(tmp_path / "3")
    assert (tmp_path / "3" / "work").stat().st_mode & 0o777 == 0o700
    spares.clear()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["2", "3"]


@pytest.mark.parametrize(
    "touch",
    [
        lambda place: (place / "work" / "file").touch(),
        lambda place: (place / "tmp" / ".hidden").mkdir(),
        lambda place: (place / "stdout.txt").touch(),
        lambda place: (place / "work").chmod(0o755),
        lambda place: place.chmod(0o500),
        lambda place: (place / "tmp").rmdir(),
        lambda place: ((place / "work").rmdir(), (place / "work").symlink_to("/")),
        lambda place: os.setxattr(place / "work", "user.mine", b"1"),
    ],
)
def test_a_directory_that_was_touched_is_not_kept(tmp_path: Path, touch: Callable[[Path], object]) -> None:
    spares = SpareWorkdirs(tmp_path, ("work", "tmp"))
    spares.make(tmp_path / "1")
    touch(tmp_path / "1")
    assert not spares.keep(tmp_path / "1")


def test_a_look_at_this_process() -> None:
    mark = shepherd.mark_of(os.getpid())
    assert mark is not None
    tree = look([mark])[mark]
    assert os.getpid() in tree.pids
    assert tree.rss_bytes > 10 << 20
    assert tree.cpu_seconds > 0
    alone = proportional_bytes([os.getpid()])
    assert alone
    assert alone > 1 << 20
    assert proportional_bytes([2**22 + 1]) is None


def test_disk_is_what_is_allocated(tmp_path: Path) -> None:
    assert disk_bytes([tmp_path, tmp_path / "none"]) == 0
    (tmp_path / "deep" / "er").mkdir(parents=True)
    base = disk_bytes([tmp_path])
    (tmp_path / "deep" / "er" / "file").write_bytes(bytes(1 << 20))
    os.link(tmp_path / "deep" / "er" / "file", tmp_path / "again")
    (tmp_path / "link").symlink_to("/usr")
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 30)
    assert 1 << 20 <= disk_bytes([tmp_path]) - base < (1 << 20) + 20_000


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


def test_files_that_lost_their_names_are_counted_while_they_are_open(tmp_path: Path) -> None:
    tree = Tree(pids=[os.getpid()])
    before = unlinked_bytes(tree)
    with (tmp_path / "gone").open("wb") as file:
        (tmp_path / "gone").unlink()
        file.write(bytes(3 << 20))
        file.flush()
        os.fsync(file.fileno())
        assert unlinked_bytes(tree) - before >= 3 << 20
