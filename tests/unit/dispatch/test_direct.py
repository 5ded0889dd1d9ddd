"""How a job that was sent directly ended, by its files, whatever they hold."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wms.dispatch.direct import BEGAN, ENDED, EXIT, USAGE, end_in


def test_an_end_is_read_from_the_files(tmp_path: Path) -> None:
    for name, text in {
        EXIT: "3\n",
        BEGAN: "1700000000\n",
        ENDED: "lease\n",
        USAGE: "0m0.01s 0m0.02s\n2m3.50s 0m0.25s\n1700000010\n",
    }.items():
        (tmp_path / name).write_text(text)
    end = end_in(tmp_path)
    assert (end.exit_code, end.ended_for, end.has_begun) == (3, "lease", True)
    assert (end.cpu_user_seconds, end.cpu_system_seconds, end.wall_seconds) == (123.5, 0.25, 10.0)


def test_a_job_that_left_nothing_has_no_exit_code(tmp_path: Path) -> None:
    end = end_in(tmp_path / "none")
    assert (end.exit_code, end.ended_for, end.has_begun, end.wall_seconds) == (None, "", False, 0.0)


@given(st.dictionaries(st.sampled_from([EXIT, BEGAN, ENDED, USAGE]), st.binary(max_size=3_000)))
@settings(max_examples=50)
def test_any_content_is_read_within_bounds(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]
) -> None:
    place = tmp_path_factory.mktemp("job")
    for name, content in files.items():
        (place / name).write_bytes(content)
    end = end_in(place)
    assert end.exit_code is None or 0 <= end.exit_code <= 999
    assert min(end.cpu_user_seconds, end.cpu_system_seconds, end.wall_seconds) >= 0
    assert len(end.ended_for) <= 1_000
