"""The printed access rules: who is named, with which principals, and what is refused."""

import json
import shlex
from pathlib import Path

import pytest

from wms.cli.__main__ import run


def test_the_rules_are_printed_as_commands_of_kafkas_tool(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kafka-acls", "--user", "alice", "--bootstrap", "b:9093"]) == 0
    first, *_ = [shlex.split(each) for each in capsys.readouterr().out.splitlines()]
    assert first[:6] == [
        "kafka-acls.sh",
        "--bootstrap-server",
        "b:9093",
        "--add",
        "--allow-principal",
        "User:alice",
    ]
    assert "wms.job.commands" in first


def test_a_principal_may_have_another_name_and_is_quoted(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kafka-acls", "--pilots", "A=User:CN=the pilots,O=$(id)"]) == 0
    printed = capsys.readouterr().out
    assert all("User:CN=the pilots,O=$(id)" in shlex.split(each) for each in printed.splitlines())


def test_the_rules_are_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["kafka-acls", "--service", "User:wms", "--json"]) == 0
    (rule,) = json.loads(capsys.readouterr().out)
    assert rule == {
        "principal": "User:wms",
        "operations": ["Create", "Read", "Write"],
        "topics": ["wms."],
        "is_prefix": True,
    }


def test_nobody_named_and_a_bad_access_file_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["kafka-acls"]) == 2
    file = tmp_path / "admin.toml"
    file.write_text("[kafka]\nport = 1\n")
    assert run(["kafka-acls", "--user", "a", "--apply", str(file)]) == 2
    assert run(["kafka-acls", "--user", "a", "--apply", str(tmp_path / "none")]) == 2
    said = capsys.readouterr().err
    assert "name --service" in said
    assert "[kafka] table" in said
