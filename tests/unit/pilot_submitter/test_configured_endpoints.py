"""Elements from the submitter's configuration: which tools of a batch system they run."""

from pathlib import Path

import msgspec
import pytest

from services.pilot_submitter.config import Config
from services.pilot_submitter.configured_endpoints import configured_endpoints_of

LISTS = {"slurm": "squeue", "htcondor": "condor_q", "pbs": "qstat", "lsf": "bjobs"}
"""The tool that lists jobs, by the table of the configuration."""


def config(place: Path, kind: str, **more: str) -> Config:
    element = {"site": "A", "ce": "ce", "directory": str(place / "jobs"), "lifetime_seconds": 3_600, **more}
    told = {
        "auth": {"jwks": ""},
        "pilots": {"directory": str(place / "pilots"), "keys": str(place / "keys")},
        "sandboxes": {"url": "file:///x"},
        kind: [element],
    }
    return msgspec.convert(told, Config)


def tool(directory: Path, name: str, word: str) -> None:
    """Make a tool that lists no jobs, and writes this word into a file of its directory's parent."""
    directory.mkdir()
    path = directory / name
    path.write_text(f"#!/bin/sh\necho {word} >> '{directory.parent}/called'\n")
    path.chmod(0o755)


@pytest.mark.parametrize("kind", LISTS)
@pytest.mark.parametrize("named", [True, False])
async def test_the_tools_of_a_batch_system_are_in_the_directory_that_is_named(
    tmp_path: Path, kind: str, *, named: bool
) -> None:
    tool(tmp_path / "tools", LISTS[kind], "named")
    tool(tmp_path / "usual", LISTS[kind], "usual")
    settings = config(tmp_path, kind, **({"tools": str(tmp_path / "tools")} if named else {}))
    environment = {"PATH": f"{tmp_path / 'usual'}:/usr/bin:/bin"}
    (endpoint,) = configured_endpoints_of(settings, environment).all()
    await endpoint.dispatcher.alive()
    assert (tmp_path / "called").read_text().split() == ["named" if named else "usual"]
