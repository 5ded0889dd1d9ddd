"""The hook that reads commit subjects."""

import subprocess
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[2] / ".githooks" / "commit-msg"


def refusal(tmp_path: Path, message: str) -> str:
    """Return what the hook says of a message; empty if it takes it."""
    file = tmp_path / "message"
    file.write_text(message)
    done = subprocess.run([HOOK, file], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (not done.stderr)
    return done.stderr


@pytest.mark.parametrize(
    "message",
    [
        "Find the leases of a pilot by an index\n\nA matcher reads all leases.\n",
        "# a comment\nFeed the index by changes",
        "fixup! Find the leases of a pilot by an index and whatever else there was in it",
        "A" + "b" * 64,
    ],
)
def test_good_subjects_are_taken(tmp_path: Path, message: str) -> None:
    assert refusal(tmp_path, message) == ""


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("A" + "b" * 65, "66 characters"),
        ("find the leases", "capital letter"),
        ("Find the leases.", "full stop"),
        ("Added an index", '"Added" is no imperative'),
        ("Finding leases", '"Finding" is no imperative'),
        ("\n\nbody", "no subject"),
    ],
)
def test_others_are_refused_with_the_reason(tmp_path: Path, message: str, why: str) -> None:
    said = refusal(tmp_path, message)
    assert why in said
    assert "remedy" in said
