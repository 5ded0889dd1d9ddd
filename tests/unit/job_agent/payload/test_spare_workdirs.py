"""Working directories that are used again, if nobody touched them."""

from pathlib import Path

from services.job_agent.payload.spare_workdirs import LIMIT, SpareWorkdirs


def test_a_directory_left_as_it_was_is_the_next_one(tmp_path: Path) -> None:
    spares = SpareWorkdirs(tmp_path, ("work", "tmp"))
    spares.make(tmp_path / "1", "me")
    made = (tmp_path / "1").stat().st_ino
    assert spares.keep(tmp_path / "1", "me")
    assert not (tmp_path / "1").exists()
    spares.make(tmp_path / "2", "me")
    assert (tmp_path / "2").stat().st_ino == made
    assert sorted(each.name for each in (tmp_path / "2").iterdir()) == ["tmp", "work"]
    spares.make(tmp_path / "3", "me")
    assert (tmp_path / "3" / "work").stat().st_mode & 0o777 == 0o700
    spares.clear()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["2", "3"]


def test_a_directory_of_one_owner_is_never_anothers(tmp_path: Path) -> None:
    spares = SpareWorkdirs(tmp_path, ("work", "tmp"))
    spares.make(tmp_path / "1", "me")
    made = (tmp_path / "1").stat().st_ino
    spares.keep(tmp_path / "1", "me")
    spares.make(tmp_path / "2", "another")
    assert (tmp_path / "2").stat().st_ino != made
    spares.make(tmp_path / "3", "me")
    assert (tmp_path / "3").stat().st_ino == made


def test_the_oldest_makes_room_for_others(tmp_path: Path) -> None:
    spares = SpareWorkdirs(tmp_path, ("work", "tmp"))
    for number in range(LIMIT + 1):
        spares.make(tmp_path / str(number), "idle" if number else "oldest")
    made = (tmp_path / "0").stat().st_ino
    for number in range(LIMIT + 1):
        assert spares.keep(tmp_path / str(number), "idle" if number else "oldest")
    assert len(list((tmp_path / ".spare").iterdir())) == LIMIT
    assert made not in {each.stat().st_ino for each in (tmp_path / ".spare").iterdir()}


def test_a_directory_is_removed_unless_a_payload_left_something(tmp_path: Path) -> None:
    spares = SpareWorkdirs(tmp_path, ("work", "tmp"))
    for name in ("1", "2"):
        spares.make(tmp_path / name, "me")
    (tmp_path / "2" / "work" / "file").touch()
    assert [spares.remove(tmp_path / name) for name in ("1", "2")] == [True, False]
    away = spares.aside(tmp_path / "2")
    assert not (tmp_path / "2").exists()
    (away / "work" / "file").unlink()
    assert spares.remove(away)
    spares.clear()
    assert list(tmp_path.iterdir()) == []
