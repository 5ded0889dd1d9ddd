"""What a payload left is taken out of its reach, through no link that it made."""

import os
from pathlib import Path

import pytest

from services.job_agent.payload.outgoing_files import link_out, name_output
from wms.errors import Rejected


def test_files_are_taken_by_their_names_and_missing_ones_are_left_out(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "d").mkdir(parents=True)
    (work / "d" / "a").write_bytes(b"a")
    (work / "link").symlink_to("d/a")
    found = link_out(work, ["d/a", "link", "no", "d/a/no"], tmp_path / "out", None)
    assert {name: path.read_bytes() for name, path in found.items()} == {"d/a": b"a", "link": b"a"}
    (work / "d" / "a").unlink()
    assert found["d/a"].read_bytes() == b"a"


def test_what_is_no_file_of_the_payload_is_refused(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "d").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"secret")
    (work / "out").symlink_to(tmp_path / "secret")
    os.mkfifo(work / "fifo")
    (work / "a").touch()
    for name, owner, words in (
        ("out", None, "leads out"),
        ("../secret", None, "leads out"),
        ("d", None, "cannot be read"),
        ("fifo", None, "not a regular file"),
        ("a", os.geteuid() + 1, "another user's"),
    ):
        with pytest.raises(Rejected, match=words):
            link_out(work, [name], tmp_path / f"to-{words}-{name.replace('/', '-')}", owner)


def test_what_was_printed_gets_its_name_unless_a_file_has_it(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    captured = tmp_path / "stdout.txt"
    captured.write_bytes(b"printed")
    (work / "mine").write_bytes(b"mine")
    (work / "away").symlink_to(tmp_path)
    for name in ("d/log", "mine", "away/got", "../got"):
        name_output(work, name, captured, None)
    name_output(work, "empty", None, None)
    assert (work / "d" / "log").read_bytes() == b"printed"
    assert (work / "mine").read_bytes() == b"mine"
    assert (work / "empty").read_bytes() == b""
    assert sorted(each.name for each in tmp_path.iterdir()) == ["stdout.txt", "work"]
