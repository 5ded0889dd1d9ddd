"""Modules are unpacked on a node whole, by one of many pilots that start at once, and where only their account can write."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.agent_file import unpacking
from deploy.agent_file.build import packed, zipped
from deploy.agent_file.unpacking import CONTENT, LISTED, UnpackError, caches, unpacked

HERE = f"cp{sys.version_info.major}{sys.version_info.minor}"
DIGEST = "ab" * 32
MODULES = {f"package/module{number}.py": f"value = {number}\n".encode() * 500 for number in range(100)}
TREE = Path(unpacking.__file__).parents[2]
STARTED = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from deploy.agent_file.unpacking import unpacked
place, _ = unpacked(Path(sys.argv[2]), sys.argv[3], [Path(sys.argv[4])])
sys.path[0] = str(place)
import package.module7
print(package.module7.value, len(list(place.rglob("module*.py"))), sorted(each.name for each in place.iterdir()))
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    members = {f"common/{name}": data for name, data in MODULES.items()}
    members |= {f"{HERE}/own.py": b"", "cp27/other.py": b"", "common/package/__init__.py": b""}
    path = tmp_path / "agent.pyz"
    path.write_bytes(zipped({CONTENT: packed(members)}))
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def descriptors() -> Iterator[list[int]]:
    found: list[int] = []
    yield found
    for each in found:
        os.close(each)


def names(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


def test_the_modules_for_this_python_are_unpacked_once(
    archive: Path, root: Path, descriptors: list[int]
) -> None:
    place, held = unpacked(archive, DIGEST, [root])
    descriptors.append(held)
    assert names(place) == {*MODULES, "package/__init__.py", "own.py", LISTED}
    assert (root.stat().st_mode & 0o777, place.name) == (0o700, f"{DIGEST[:32]}-{HERE}")
    before = {name: (place / name).stat().st_ino for name in names(place)}
    archive.unlink()  # not read a second time
    again, held = unpacked(archive, DIGEST, [root])
    descriptors.append(held)
    assert (again, {name: (place / name).stat().st_ino for name in names(place)}) == (place, before)


def test_many_pilots_may_start_at_once(archive: Path, root: Path) -> None:
    command = [sys.executable, "-I", "-c", STARTED, str(TREE), str(archive), DIGEST, str(root)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    said = {each.communicate()[0] for each in started}
    assert [each.returncode for each in started] == [0] * 8
    assert said == {"7 100 ['.files', 'own.py', 'package']\n"}


@pytest.mark.parametrize("damage", ["lost", "zeros", "cut", "unlisted"])
def test_what_is_lost_or_damaged_is_written_anew(
    archive: Path, root: Path, damage: str, descriptors: list[int]
) -> None:
    place, held = unpacked(archive, DIGEST, [root])
    descriptors.append(held)
    victim = place / "package/module3.py"
    good = victim.read_bytes()
    match damage:
        case "lost":
            victim.unlink()
        case "zeros":  # as some file systems have it after a loss of power
            victim.write_bytes(bytes(len(good)))
        case "cut":
            victim.write_bytes(good[:10])
        case "unlisted":  # by a pilot that died meanwhile
            victim.unlink()
            (place / LISTED).unlink()
    _, held = unpacked(archive, DIGEST, [root])
    descriptors.append(held)
    assert victim.read_bytes() == good
    assert names(place) == {*MODULES, "package/__init__.py", "own.py", LISTED}


def test_a_cache_that_others_can_write_is_passed_over(
    archive: Path, root: Path, tmp_path: Path, descriptors: list[int]
) -> None:
    root.mkdir()
    root.chmod(0o777)
    with pytest.raises(UnpackError, match="other users may read or write there"):
        unpacked(archive, DIGEST, [root])
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    with pytest.raises(UnpackError, match="not a directory of this account"):
        unpacked(archive, DIGEST, [link])
    place, held = unpacked(archive, DIGEST, [root, link, tmp_path / "third"])
    descriptors.append(held)
    assert place.parent == tmp_path / "third"


def test_modules_of_other_files_go_once_nobody_uses_them(
    archive: Path, root: Path, descriptors: list[int]
) -> None:
    old, used = root / "old", root / "used"
    for each in (old, used):
        each.mkdir(parents=True)
    root.chmod(0o700)
    place, held = unpacked(archive, "cd" * 32, [root])  # an older file, of which an agent runs
    descriptors.append(held)
    for each in (old, place):
        os.utime(each, (0, 0))
    _, held = unpacked(archive, DIGEST, [root])
    descriptors.append(held)
    assert (old.exists(), used.exists(), place.exists()) == (False, True, True)


def test_the_cache_is_named_by_the_account() -> None:
    name = f"wms-agent-{os.getuid()}"
    assert caches({"WMS_AGENT_CACHE": "/scratch"}) == [Path("/scratch", name)]
    assert caches({})[0] == Path("/var/tmp", name)
