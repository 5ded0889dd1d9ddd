"""Files of a workflow's job: their names at the site, and their way back."""

import os
from pathlib import Path

import pytest

from wms.errors import Rejected
from wms.snakemake.job_files import patterns, present, put


def test_files_keep_their_names_below_the_workflow(tmp_path: Path) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "a.txt").write_text("a")
    (tmp_path / "data" / "empty").mkdir()
    (tmp_path / "b.txt").write_text("b")
    found = present(["data", f"{tmp_path}/b.txt", "missing.txt"], tmp_path)
    names = ("b.txt", "data/deep/a.txt", "data/empty")
    assert found == {name: tmp_path / name for name in names}


@pytest.mark.parametrize("path", ["/etc/passwd", "../other", "data/../../x"])
def test_files_elsewhere_are_refused(path: str, tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="OUTSIDE_FILE"):
        present([path], tmp_path)
    with pytest.raises(Rejected, match="outside of the workflow's directory"):
        patterns([path], tmp_path)


def test_outputs_are_taken_by_their_names(tmp_path: Path) -> None:
    assert patterns(["out/a[1].txt", "dir"], tmp_path) == ("out/a[[]1].txt", "dir")


def test_what_comes_back_is_put_in_its_place_as_new(tmp_path: Path) -> None:
    fetched, work = tmp_path / "fetched", tmp_path / "work"
    (fetched / "out").mkdir(parents=True)
    (work / "out").mkdir(parents=True)
    (work / "out" / "kept").write_text("1")
    (fetched / "out" / "a").write_text("2")
    (fetched / "stdout.txt").write_text("printed")
    os.utime(fetched / "out" / "a", (0, 0))
    put(fetched, work)
    assert (work / "out" / "a").stat().st_mtime > 0
    assert not (work / "stdout.txt").exists()
    assert (work / "out" / "a").read_text() == "2"
    assert (work / "out" / "kept").read_text() == "1"
