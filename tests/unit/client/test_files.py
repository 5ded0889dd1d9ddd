"""The input files of a user: which go along, under which names."""

from pathlib import Path

import pytest

from wms.client.files import members
from wms.errors import Rejected


def test_a_directory_goes_along_with_its_links_and_empty_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("proj/v3", "proj/out", "shared/deep"):
        Path(name).mkdir(parents=True)
    for name in ("proj/v3/a", "shared/deep/b"):
        Path(name).touch()
    Path("proj/current").symlink_to("v3")
    Path("proj/common").symlink_to("../shared")
    Path("proj/v3/round").symlink_to("..")
    found = members(["proj", str(tmp_path / "proj" / "out")])
    names = {"proj/v3/a", "proj/current/a", "proj/out", "proj/common/deep/b", "out"}
    assert set(found) == names
    assert found["proj/current/a"].is_file()
    assert found["proj/out"].is_dir()


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("one/x", "two/x"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    with pytest.raises(Rejected, match="would both be x"):
        members([tmp_path / "one/x", tmp_path / "two/x"])
    with pytest.raises(Rejected, match="there is no file"):
        members([tmp_path / "none"])
