"""The samples in `deploy/` are read by the services they are for, and say what the documents say there is."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from docs.pages.configuration import configs
from wms.runtime.config import read

FOLDER = Path(__file__).parents[3] / "deploy"


def test_there_is_a_sample_for_every_service() -> None:
    assert {path.stem for path in FOLDER.glob("*.toml")} == configs().keys()


@pytest.mark.parametrize("service", configs())
def test_the_service_reads_its_sample(service: str) -> None:
    assert isinstance(read(FOLDER / f"{service}.toml", configs()[service], {}), configs()[service])


@pytest.mark.parametrize("service", configs())
def test_the_sample_explains_itself(service: str) -> None:
    lines = (FOLDER / f"{service}.toml").read_text().splitlines()
    assert lines[0].startswith("# ")
    assert sum(line.startswith("#") for line in lines) >= len(lines) / 6
    assert all(len(line) <= 130 for line in lines)


def test_what_must_be_the_same_is_the_same() -> None:
    """The matcher grants offers and the job manager leases, by one pair of terms."""
    terms: list[Any] = [
        read(FOLDER / f"{name}.toml", configs()[name], {}).lease  # type: ignore[attr-defined]
        for name in ("job_manager", "matcher")
    ]
    assert terms[0] == terms[1]


def test_the_sample_trusts_nobody_with_direct_jobs() -> None:
    found = read(FOLDER / "pilot_submitter.toml", configs()["pilot_submitter"], {})
    elements = [found.pilots, *found.slurm, *found.arc, *found.htcondor, *found.pbs, *found.lsf]  # type: ignore[attr-defined]
    assert len(elements) == 6
    assert not any(each.direct_trusted for each in elements)


def test_samples_hold_no_secret() -> None:
    for service, kind in configs().items():
        text = msgspec.json.encode(read(FOLDER / f"{service}.toml", kind, {})).decode()
        assert "eyJ" not in text
        assert "PRIVATE KEY" not in text
        assert not any(
            ":" in part.rpartition("@")[0]
            for part in text.split("postgresql://")[1:]
            if "@" in part.partition('"')[0]
        )
