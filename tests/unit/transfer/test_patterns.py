"""Output patterns: what they choose, what they leave, and that no link leads them out."""

import os
from pathlib import Path

import pytest

from wms.errors import Rejected
from wms.transfer import ArchiveLimits, select, selects

TREE = [
    "a.txt",
    "b.log",
    "out/x.root",
    "out/deep/y.root",
    "out/deep/er/z.root",
    ".hidden",
    "out/.secret/s.root",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in TREE:
        path = tmp_path / "job" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path / "job"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("a.txt", {"a.txt"}),
        ("./a.txt", {"a.txt"}),
        ("*.txt", {"a.txt"}),
        ("?.lo[gh]", {"b.log"}),
        ("*", set(TREE) - {".hidden"}),
        (".*", {".hidden"}),
        ("out", {"out/x.root", "out/deep/y.root", "out/deep/er/z.root", "out/.secret/s.root"}),
        ("out/", {"out/x.root", "out/deep/y.root", "out/deep/er/z.root", "out/.secret/s.root"}),
        ("out/*", {"out/x.root", "out/deep/y.root", "out/deep/er/z.root"}),
        ("out/*.root", {"out/x.root"}),
        ("**/*.root", {"out/x.root", "out/deep/y.root", "out/deep/er/z.root"}),
        ("**/**/z.root", {"out/deep/er/z.root"}),
        ("out/**/er/*", {"out/deep/er/z.root"}),
        ("**", set(TREE) - {".hidden"}),
        (".", set(TREE)),
        ("out/d*", {"out/deep/y.root", "out/deep/er/z.root"}),
    ],
)
def test_a_pattern_chooses(root: Path, pattern: str, names: set[str]) -> None:
    selection = select(root, (pattern,))
    assert set(selection.files) == names
    assert {name for name in TREE if selects(pattern, name)} == names, "by their names alone"
    assert selection.unmatched == ()
    assert selection.size == sum(len(name) for name in names)
    assert all(path.read_text() == name for name, path in selection.files.items())


def test_patterns_that_match_nothing_are_told(root: Path) -> None:
    selection = select(root, ("a.txt", "none", "*.none", "out/**/none", "a.txt/below", "*.txt"))
    assert selection.unmatched == ("none", "*.none", "out/**/none", "a.txt/below")
    assert set(selection.files) == {"a.txt"}


@pytest.mark.parametrize("pattern", ["/etc/passwd", "../x", "a/../../x", "**/..", "nul\0"])
def test_a_pattern_that_climbs_is_refused(root: Path, pattern: str) -> None:
    with pytest.raises(Rejected, match="not a name below"):
        select(root, (pattern,))


def test_links_are_followed_inside_and_never_out(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "token").write_text("secret")
    (root / "latest").symlink_to("out/x.root")
    (root / "file_out").symlink_to(outside / "token")
    (root / "dir_out").symlink_to(outside)
    (root / "dir_in").symlink_to("out")
    (root / "dangling").symlink_to("nowhere")
    selection = select(root, ("latest", "*_out", "dir_in", "dir_out/token", "dangling"))
    below = {"x.root", "deep/y.root", "deep/er/z.root", ".secret/s.root"}
    assert set(selection.files) == {"latest", *(f"dir_in/{name}" for name in below)}
    assert selection.files["latest"].read_text() == "out/x.root"
    assert selection.unmatched == ("*_out", "dir_out/token", "dangling")
    reasons = dict(line.split(": ", 1) for line in selection.refused)
    assert set(reasons) == {"file_out", "dir_out", "dir_out/token", "dangling"}
    assert "leads out" in reasons["file_out"]
    assert "leads out" in reasons["dir_out/token"]


def test_what_is_no_file_is_left_and_told(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "new\nline").write_text("x")
    selection = select(root, ("pipe", "new*"))
    assert selection.files == {}
    assert selection.unmatched == ("pipe", "new*")
    assert len(selection.refused) == 2


@pytest.mark.parametrize("pattern", ["**", "out", "*", "out/*", "out/empty"])
def test_empty_directories_are_selected_and_links_that_go_round_are_not_followed(
    root: Path, pattern: str
) -> None:
    (root / "out" / "empty").mkdir()
    (root / "out" / "deep" / "round").symlink_to("..")
    selection = select(root, (pattern,))
    assert selection.files["out/empty"].is_dir()
    assert selection.unmatched == ()
    assert not [name for name in selection.files if "round" in name]
    assert all("it lies in" in line for line in selection.refused)


def test_what_fits_is_selected_and_the_largest_is_named(root: Path) -> None:
    with (root / "hole.bin").open("wb") as file:
        file.truncate(200 << 20)
    (root / "half.bin").write_bytes(bytes(60))
    selection = select(root, ("*.bin", "a.txt"), 64)
    assert set(selection.files) == {"a.txt"}
    assert (selection.size, selection.wanted, selection.unfit) == (5, 5 + 60 + (200 << 20), 2)
    assert selection.refused == (
        "hole.bin: 209,715,200 bytes, for which there is no room",
        "half.bin: 60 bytes, for which there is no room",
    )
    assert set(select(root, ("*.bin", "a.txt"), 65).files) == {"a.txt", "half.bin"}


def test_more_files_than_an_archive_may_have_are_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wms.transfer.patterns.ArchiveLimits", lambda: ArchiveLimits(members=4))
    selection = select(root, ("*",))
    assert (len(selection.files), selection.unfit) == (2, len(TREE) - 1 - 2)


def test_files_beside_do_not_keep_a_pattern_from_its_files(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (root / f"{number}.dat").touch()
    assert set(select(root, ("a.*",)).files) == {"a.txt"}
    monkeypatch.setattr("wms.transfer.patterns._WALK_LIMIT", 25)
    selection = select(root, ("1*.dat",))
    assert set(selection.files) >= {"1.dat", "10.dat"}
    assert "more than 25 files" in selection.refused[-1]


def test_what_cannot_be_read_is_told_if_it_matches(root: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("root reads all")
    (root / "out" / "deep").chmod(0)
    try:
        assert select(root, ("out",)).refused == ("out/deep: cannot be read: Permission denied",)
        assert select(root, ("*.txt",)).refused == ()
    finally:
        (root / "out" / "deep").chmod(0o755)
