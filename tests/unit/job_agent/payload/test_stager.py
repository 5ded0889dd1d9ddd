"""What a stager does to the files of a payload, in a thread in place of a process."""

import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.job_agent.payload import stager as stager_module
from services.job_agent.payload.stager import as_made, disk_bytes, empty, give, is_untouched
from services.job_agent.payload.stager_link import StagerLink
from tests.unit.job_agent.payload.local_stager import local_stager
from wms.errors import Rejected
from wms.transfer import pack, unpack

MIB = 1024 * 1024


@pytest.fixture
def work(tmp_path: Path) -> Path:
    for name in ("work", "tmp"):
        (tmp_path / name).mkdir(mode=0o700)
    return tmp_path / "work"


@pytest.fixture
def stager(work: Path) -> Iterator[StagerLink]:
    with local_stager(work, work.parent / "tmp", disk_bytes=MIB) as link:
        yield link


def archive(directory: Path, **members: bytes) -> Path:
    with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
        pack(members, file)
    return Path(file.name)


def test_inputs_come_as_opened_files_and_are_known_by_when_they_were_changed(
    stager: StagerLink, work: Path, tmp_path: Path
) -> None:
    stager.unpack(archive(tmp_path, prog=b"#!/bin/sh"), "")
    stager.unpack(archive(tmp_path, a=b"1"), "17")
    (tmp_path / "fetched").write_bytes(b"data")
    stager.put(tmp_path / "fetched", "deep/in.dat", executable=True)
    ready = stager.ready("./prog", "17/a")
    assert ready.is_own
    files = [work / name for name in ("prog", "17/a", "deep/in.dat")]
    assert max(each.stat().st_ctime_ns for each in files) == ready.unchanged_ns
    assert [each.stat().st_mode & 0o777 for each in files] == [0o744, 0o644, 0o755]
    assert not stager.ready("/bin/sh", "").is_own


def test_inputs_are_refused_where_they_cannot_be(stager: StagerLink, tmp_path: Path) -> None:
    stager.unpack(archive(tmp_path, a=b"1"), "")
    for name, words in (("a", "is in the input sandbox already"), ("a/b", "lies below another file")):
        with pytest.raises(Rejected, match=words):
            stager.put(archive(tmp_path), name, executable=False)
    with pytest.raises(Rejected, match="has a file of the name"):
        stager.unpack(archive(tmp_path, b=b"1"), "a")
    for stdin, words in (("none", "not among"), ("../x", "outside")):
        with pytest.raises(Rejected, match=words):
            stager.ready("true", stdin)


def test_all_inputs_together_have_one_limit_of_disk(stager: StagerLink, work: Path, tmp_path: Path) -> None:
    stager.unpack(archive(tmp_path, a=bytes(600_000)), "")
    with pytest.raises(Rejected, match="more than the 1,048,576 bytes") as refused:
        stager.unpack(archive(tmp_path, b=bytes(600_000)), "")
    assert refused.value.code == "DISK_LIMIT"
    assert disk_bytes([work]) < MIB
    (tmp_path / "large").write_bytes(bytes(600_000))
    with pytest.raises(Rejected, match="more than"):
        stager.put(tmp_path / "large", "c", executable=False)


def test_chosen_outputs_come_as_an_archive_with_what_was_printed(
    stager: StagerLink, work: Path, tmp_path: Path
) -> None:
    for name, text in (("a.out", b"result"), ("stdout.txt", b"mine"), ("b.log", b"log")):
        (work / name).write_bytes(text)
    found = stager.select(("*.out", "none*", "stdout.txt"), None, ("stdout.txt",), 1 << 20)
    assert (found.chosen, found.unmatched, found.left) == (1, ["none*"], ["b.log", "stdout.txt"])
    assert found.refused == ["stdout.txt: the name of what was printed"]
    target = io.BytesIO()
    (tmp_path / "printed").write_bytes(b"hello")
    with (tmp_path / "printed").open("rb") as printed:
        stager.pack({"stdout.txt": printed}, target, MIB, chosen=True)
    unpack(target.getvalue(), tmp_path / "got")
    got = {path.name: path.read_bytes() for path in (tmp_path / "got").iterdir()}
    assert got == {"a.out": b"result", "stdout.txt": b"hello"}


def test_an_archive_over_its_limit_is_refused_and_the_next_is_not(stager: StagerLink, work: Path) -> None:
    (work / "large").write_bytes(os.urandom(100_000))
    stager.select(("large",), None, (), 1 << 30)
    with pytest.raises(Rejected, match="take more than 50000 bytes"):
        stager.pack({}, io.BytesIO(), 50_000, chosen=True)
    stager.pack({}, io.BytesIO(), 200_000, chosen=True)


def test_what_was_printed_gets_its_name_unless_a_file_has_it(
    stager: StagerLink, work: Path, tmp_path: Path
) -> None:
    captured = tmp_path / "stdout.txt"
    captured.write_bytes(b"printed")
    (work / "mine").write_bytes(b"mine")
    (work / "away").symlink_to(tmp_path)
    before = sorted(each.name for each in tmp_path.iterdir())
    for name in ("d/log", "mine", "away/got", "../got"):
        stager.name_printed(name, captured)
    stager.name_printed("empty", None)
    assert (work / "d" / "log").read_bytes() == b"printed"
    assert (work / "mine").read_bytes() == b"mine"
    assert (work / "empty").read_bytes() == b""
    assert sorted(each.name for each in tmp_path.iterdir()) == before


def test_outputs_come_opened_and_missing_ones_are_left_out(stager: StagerLink, work: Path) -> None:
    (work / "d").mkdir()
    (work / "d" / "a").write_bytes(b"a")
    (work / "link").symlink_to("d/a")
    for name in ("d/a", "link"):
        file = stager.output(name)
        assert file is not None
        with file:
            assert file.read() == b"a"
    assert [stager.output(name) for name in ("no", "d/a/no")] == [None, None]


def test_what_is_no_file_of_the_payload_is_refused(stager: StagerLink, work: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    (work / "out").symlink_to(tmp_path / "secret")
    (work / "d").mkdir()
    os.mkfifo(work / "fifo")
    for name, words in (
        ("out", "leads out"),
        ("../secret", "leads out"),
        ("d", "cannot be read"),
        ("fifo", "not a regular file"),
    ):
        with pytest.raises(Rejected, match=words):
            stager.output(name)


def test_all_is_deleted_whatever_its_modes_and_however_deep(stager: StagerLink, work: Path) -> None:
    place = os.open(work, os.O_RDONLY)
    for _ in range(1_500):
        os.mkdir("d" * 10, dir_fd=place)
        below = os.open("d" * 10, os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = below
    os.close(place)
    (work / "locked" / "in").mkdir(parents=True)
    (work / "locked" / "in" / "file").touch()
    (work / "locked" / "in").chmod(0)
    (work / "locked").chmod(0)
    (work / "away").symlink_to("/etc")
    os.mkfifo(work.parent / "tmp" / "fifo")
    work.chmod(0o500)
    os.setxattr(work, "user.mine", b"1")
    assert stager.clear()
    assert list(work.iterdir()) == []


def test_a_wide_directory_is_deleted_name_by_name(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(*_: object) -> list[str]:
        raise MemoryError

    (work / "wide").mkdir()
    for number in range(3_000):
        (work / "wide" / str(number)).touch()
    monkeypatch.setattr(os, "listdir", listed)
    assert not as_made([str(work)])
    empty(str(work))
    assert as_made([str(work)])


def test_a_file_of_many_names_counts_once_and_names_are_bounded(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "0").write_bytes(bytes(MIB))
    for number in range(1, 8):
        os.link(work / "0", work / str(number))
    assert disk_bytes([work]) == MIB
    monkeypatch.setattr(stager_module, "NAMES_MOST", 4)
    assert disk_bytes([work]) == MIB // 2


def test_given_files_are_the_payloads_alone_and_leave_no_trace(work: Path) -> None:
    scratch = work.parent / "tmp"
    order = {"cwd": str(work), "scratch": str(scratch), "given": {".token": "t"}}
    give(str(scratch), {".token": "t"})
    assert (scratch / ".token").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        give(str(scratch), {".token": "t"})
    assert not as_made((str(work), str(scratch)))
    assert is_untouched(order)
    (work / ".hidden").mkdir()
    assert not is_untouched(order)
    empty(str(work))
    work.chmod(0o755)
    assert not is_untouched(order)
