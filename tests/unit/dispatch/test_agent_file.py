"""An agent's file is copied once to where nodes see it, and each pilot keeps the one with which it was sent."""

from pathlib import Path

import pytest

from wms.dispatch.agent_file import SHARED, AgentFile
from wms.dispatch.pilot_directories import Places
from wms.errors import Rejected


def test_nodes_that_share_a_directory_find_one_copy_there(tmp_path: Path) -> None:
    file = AgentFile(tmp_path / "agent.pyz", "python3.12")
    file.path.write_bytes(b"first")
    argv = file.shared_argv(tmp_path / "pilots")
    assert argv[:2] == ["python3.12", "-I"]
    assert Path(argv[2]).read_bytes() == b"first"
    assert file.shared_argv(tmp_path / "pilots") == argv
    file.path.write_bytes(b"second")
    newer = file.shared_argv(tmp_path / "pilots")
    assert (Path(argv[2]).read_bytes(), Path(newer[2]).read_bytes()) == (b"first", b"second")
    assert len(list((tmp_path / "pilots" / SHARED).iterdir())) == 2
    # The directory of copies is no pilot's.
    assert Places(tmp_path / "pilots").known() == []


def test_nodes_that_share_nothing_get_it_under_its_own_name(tmp_path: Path) -> None:
    assert AgentFile(tmp_path / "agent.pyz").argv == ["python3", "-I", "agent.pyz"]


def test_a_file_that_is_not_there_is_said_at_once_with_what_builds_one(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="no file with a job agent") as refused:
        AgentFile(tmp_path / "none").shared_argv(tmp_path)
    assert "deploy.agent_file" in refused.value.remedy
