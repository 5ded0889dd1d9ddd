"""Output patterns: what they choose, what they leave, and that no link leads them out."""

import os
from pathlib import Path

import pytest

from wms.errors import Rejected
from wms.transfer import select

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
    assert set(selection.files) == {"latest"}
    assert selection.files["latest"].read_text() == "out/x.root"
    assert selection.unmatched == ("*_out", "dir_in", "dir_out/token", "dangling")
    reasons = dict(line.split(": ", 1) for line in selection.refused)
    assert set(reasons) == {"file_out", "dir_out", "dir_in", "dir_out/token", "dangling"}
    assert "leads out" in reasons["file_out"]
    assert "leads out" in reasons["dir_out/token"]


def test_what_is_no_file_is_left_and_told(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "new\nline").write_text("x")
    selection = select(root, ("pipe", "new*"))
    assert selection.files == {}
    assert selection.unmatched == ("pipe", "new*")
    assert len(selection.refused) == 2
