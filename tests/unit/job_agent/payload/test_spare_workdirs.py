"""Working directories that are used again, if nobody touched them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from services.job_agent.payload.spare_workdirs import SpareWorkdirs


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
