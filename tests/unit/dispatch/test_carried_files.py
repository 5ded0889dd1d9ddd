"""Archives of jobs that are sent directly: one there, and one back, which may hold anything."""

import contextlib
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from wms.dispatch import carried_files
from wms.dispatch.carried_files import BACK, THERE, carried_script, pack_inputs, unpack_outputs
from wms.dispatch.direct import DirectPayload, end_in
from wms.errors import Rejected


def archive(path: Path, *members: tarfile.TarInfo, content: bytes = b"x") -> Path:
    with tarfile.open(path, "w") as tar:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content))
    return path


def link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, to
    return made


def test_a_job_runs_where_its_files_are_carried(tmp_path: Path) -> None:
    inputs, place = tmp_path / "inputs", tmp_path / "scratch"
    inputs.mkdir()
    place.mkdir()
    (inputs / "in put").write_text("given")
    pack_inputs(inputs, place / THERE)
    payload = DirectPayload(
        argv=("sh", "-c", "cat 'in put'; echo made > out; exit 7"),
        environment={"PATH": "/usr/bin:/bin"},
        inputs=inputs,
    )
    script = carried_script("p-1", payload)
    assert subprocess.run(["/bin/sh", "-c", script], cwd=place, timeout=60, check=False).returncode == 0
    unpack_outputs(place / BACK, tmp_path / "back")
    end = end_in(tmp_path / "back")
    assert (end.exit_code, end.has_begun) == (7, True)
    assert (tmp_path / "back" / "stdout.txt").read_text() == "given"
    assert (tmp_path / "back" / "work" / "out").read_text() == "made\n"


@pytest.mark.parametrize("name", ["../outside", "/etc/outside"])
def test_nothing_is_unpacked_outside(tmp_path: Path, name: str) -> None:
    made = archive(tmp_path / BACK, tarfile.TarInfo(name))
    back = tmp_path / "deep" / "back"
    with contextlib.suppress(Rejected):
        unpack_outputs(made, back)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} <= {
        BACK,
        "deep/back/etc/outside",
    }


def test_links_and_devices_are_left_out(tmp_path: Path) -> None:
    odd = [link("a", "/etc"), link("b", "exit", tarfile.LNKTYPE), link("c", "", tarfile.FIFOTYPE)]
    unpack_outputs(archive(tmp_path / BACK, *odd, tarfile.TarInfo("exit")), tmp_path / "back")
    assert [path.name for path in (tmp_path / "back").iterdir()] == ["exit"]


@pytest.mark.parametrize(("limit", "value"), [("MEMBERS_LIMIT", 1), ("BACK_LIMIT", 1)])
def test_what_is_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(carried_files, limit, value)
    made = archive(tmp_path / BACK, tarfile.TarInfo("exit"), tarfile.TarInfo("began"))
    with pytest.raises(Rejected, match="than are fetched"):
        unpack_outputs(made, tmp_path / "back")


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x1f\x8b" + b"\0" * 600, b"a" * 1_024])
def test_what_is_no_archive_is_refused_or_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / BACK).write_bytes(content)
    with contextlib.suppress(Rejected):
        unpack_outputs(tmp_path / BACK, tmp_path / "back")
    assert end_in(tmp_path / "back").exit_code is None
