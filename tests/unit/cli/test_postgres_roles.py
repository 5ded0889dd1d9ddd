"""The printed roles: which, under which names, with what; and what is refused."""

import json
from pathlib import Path

import pytest

from wms.cli.__main__ import run


def test_the_roles_are_printed_as_sql(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["postgres-roles"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("begin;\n")
    assert printed.endswith("commit;\n")
    assert "grant insert on table audit_record to wms_job_manager;" in printed
    assert "password" not in printed


def test_one_role_may_be_printed_under_another_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["postgres-roles", "--role", "gateway", "--prefix", "grid_"]) == 0
    printed = capsys.readouterr().out
    assert "create role grid_gateway login" in printed
    assert "matcher" not in printed


def test_the_rights_are_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["postgres-roles", "--role", "gateway", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"action": "select", "kind": "table", "name": "revocation", "columns": []} in told["wms_gateway"]


def test_unknown_roles_and_bad_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["postgres-roles", "--role", "nobody"]) == 2
    assert run(["postgres-roles", "--passwords", str(tmp_path)]) == 2
    file = tmp_path / "owner.toml"
    for text in ("", "[postgres]\nport = 1\n"):
        file.write_text(text)
        assert run(["postgres-roles", "--apply", str(file)]) == 2
    assert run(["postgres-roles", "--apply", str(tmp_path / "none")]) == 2
    said = capsys.readouterr().err
    assert "no role is named 'nobody'" in said
    assert "[postgres] table" in said
