"""`wms demo` as a user runs it: its figures, its end by Ctrl-C, and what it leaves when something goes wrong."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.waiting import eventually
from wms.embedded.leftover_processes import members, system_id
from wms.embedded.own_system import RunFailed, own_system


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return where commands put what is temporary."""
    path = tmp_path / "temporary"
    path.mkdir()
    return path


def start(place: Path, *arguments: str, ignoring: signal.Signals | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*_ignoring(ignoring), sys.executable, "-m", "wms.cli", "demo", *arguments],
        env={**os.environ, "TMPDIR": str(place)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _ignoring(number: signal.Signals | None) -> list[str]:
    """Return what starts a command as a shell does in its foreground, or in its background, where these tests may be."""
    return ["env", f"--ignore-signal={number.name.removeprefix('SIG')}" if number else "--default-signal=INT"]


def lines(process: subprocess.Popen[str]) -> Iterator[str]:
    assert process.stderr is not None
    return iter(process.stderr.readline, "")


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_all_goes_well_and_says_so(place: Path, tmp_path: Path) -> None:
    with start(place, "--json", "--data", str(tmp_path / "kept")) as process:
        said, notes = process.communicate(timeout=590)
    assert process.returncode == 0, notes
    summary = msgspec.json.decode(said)
    assert summary["verified"]
    assert summary["audit"] == "all checks hold"
    assert summary["isolation"] == "as asked for"
    assert "pilots reach the services through the gateway alone; jobs are not isolated here" in notes
    assert summary["jobs"] >= 200
    assert summary["attempts"] >= summary["jobs"]
    assert summary["pilots_used"] >= 1
    assert summary["matches_per_second"] > 0
    assert 0 <= summary["wait_seconds"]["median"] <= summary["wait_seconds"]["p95"]
    assert {"start", "submit", "map", "fetch", "merge", "verify", "stop", "all"} <= summary["seconds"].keys()
    assert not members(system_id(tmp_path / "kept"))
    assert (tmp_path / "kept" / "client.toml").is_file()
    assert not list(place.iterdir())


@pytest.mark.parametrize(
    ("number", "ignoring"),
    [
        (signal.SIGINT, None),
        # As in a shell's background.
        pytest.param(signal.SIGTERM, signal.SIGINT, marks=pytest.mark.slow),
    ],
)
async def test_interrupted_it_stops_everything_and_leaves_nothing(
    place: Path, number: signal.Signals, ignoring: signal.Signals | None
) -> None:
    with start(place, ignoring=ignoring) as process:
        for line in lines(process):
            if "count tokens: " in line:
                break
        (root,) = place.glob("wms-*/up.lock")
        mark = system_id(root.parent)
        assert members(mark)
        process.send_signal(number)
        said, notes = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, ""), notes
    assert not members(mark)
    await eventually(lambda: not list(place.iterdir()))


async def test_a_directory_with_something_in_it_is_refused(place: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").touch()
    with start(place, "--data", str(tmp_path / "mine")) as process:
        _, notes = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "has something in it" in notes


async def test_what_went_wrong_leaves_the_logs_and_says_where(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("tempfile.tempdir", str(place))
    with pytest.raises(RunFailed, match="two and two"):
        async with own_system(None, said.append, services=(), durable=False):
            raise RunFailed("two and two were not four")
    (kept,) = place.iterdir()
    (line,) = said
    assert f"everything is left in {kept}" in line
    assert list(kept.glob("*/*.log"))
    assert not members(system_id(kept))
    shutil.rmtree(kept)
