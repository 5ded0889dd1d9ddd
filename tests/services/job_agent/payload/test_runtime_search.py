"""Which programs are tried, and what no variable of a job may do with any of them."""

from pathlib import Path

import pytest

from services.job_agent.payload.apptainer import Apptainer
from services.job_agent.payload.podman import Podman
from services.job_agent.payload.runtime_search import PODMANS, candidates, find_runtime
from tests.services.job_agent.payload.contained_payloads import payload_of
from wms.errors import Rejected

each_runtime = pytest.mark.parametrize(
    "runtime", [Podman(), Apptainer(), Apptainer("singularity")], ids=lambda each: each.name
)


def program(directory: Path, name: str, prints: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\necho '{prints}'\necho 'FATAL:   no' >&2\nexit 255\n")
    (directory / name).chmod(0o755)


@each_runtime
def test_no_value_of_a_variable_is_on_the_command_line_or_read_by_the_program(
    runtime: Podman | Apptainer, tmp_path: Path
) -> None:
    argv, environment = runtime.command(
        payload_of(tmp_path, "docker://a/b:1", CONTAINERS_CONF="/evil", SECRET="hush")
    )
    assert not [word for word in argv if "hush" in word or "evil" in word]
    assert "CONTAINERS_CONF" not in environment
    assert "SECRET" not in environment
    assert argv[-3:] == ["docker://a/b:1", "prog", "-x"]


@each_runtime
def test_names_that_a_program_could_misread_are_refused(runtime: Podman | Apptainer, tmp_path: Path) -> None:
    for name in ("A B", "#x", "A*", ""):
        with pytest.raises(Rejected):
            runtime.command(payload_of(tmp_path, "a", **{name: "x"}))


def test_users_have_apptainer_or_singularity_tried_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("os.geteuid", lambda: 1_000)
    program(tmp_path, "podman", "podman version 4.3.1")
    program(tmp_path, "singularity", "singularity-ce version 4.1.1")
    podmans = ["podman"] * (1 + len(PODMANS))
    assert [each.name for each in candidates()] == ["singularity", *podmans]
    program(tmp_path, "apptainer", "apptainer version 1.4.5")
    assert [each.name for each in candidates()] == ["apptainer", *podmans]


def test_a_game_of_the_same_name_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("os.geteuid", lambda: 1_000)
    program(tmp_path, "singularity", "Endgame: Singularity")
    assert candidates() == []


def test_why_none_works_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_runtime() == (None, "neither podman nor apptainer is installed")
    program(tmp_path, "podman", "podman version 4.3.1")
    assert find_runtime() == (None, "podman: FATAL:   no")
