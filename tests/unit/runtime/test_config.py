"""Configuration: what is wrong in a file or a variable is named with its place, before anything is connected to."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from services.advertiser.config import Config as AdvertiserConfig
from services.job_manager.config import Config as JobManagerConfig
from services.matcher.config import Config as MatcherConfig
from wms.errors import Rejected
from wms.runtime.config import read
from wms.runtime.pilot_config import PilotConfig

LEAST = '[auth]\njwks = "/keys/jwks.json"\n'


@pytest.fixture
def file(tmp_dir: Path) -> Path:
    return tmp_dir / "service.toml"


def config(file: Path, text: str, environment: dict[str, str] | None = None) -> JobManagerConfig:
    file.write_text(text, "utf-8")
    return read(file, JobManagerConfig, environment or {})


def refusal(
    file: Path,
    text: str,
    environment: dict[str, str] | None = None,
    kind: type[msgspec.Struct] = JobManagerConfig,
) -> str:
    file.write_text(text, "utf-8")
    with pytest.raises(Rejected) as caught:
        read(file, kind, environment or {})
    assert caught.value.code == "CONFIG_INVALID"
    return str(caught.value)


def test_a_file_is_measured_before_it_is_parsed(file: Path) -> None:
    assert "is larger than 4,194,304 bytes" in refusal(file, "#" * 4_194_305)
    assert "CONFIG_INVALID" in refusal(file, "a = " + "[" * 100_000)


def test_what_is_not_said_has_its_default(file: Path) -> None:
    read = config(file, LEAST)
    assert read.auth.jwks == "/keys/jwks.json"
    assert (read.postgres.pool, read.lease.lease_seconds, read.log.level) == (8, 120.0, "info")


def test_what_is_said_is_taken(file: Path) -> None:
    read = config(file, LEAST + "[lease]\nlease_seconds = 7\n[queues]\ncpu_segments = [10, 20]\n")
    assert (read.lease.lease_seconds, read.lease.offer_seconds) == (7.0, 30.0)
    assert read.queues.cpu_segments == (10, 20)


WRONG = {
    "an unknown table": ("[postgress]\nurl = 'x'", "postgress"),
    "an unknown key": ("[postgres]\nurll = 'x'", "urll"),
    "where the unknown key is": ("[postgres]\nurll = 'x'", "$.postgres"),
    "an unknown key of the lease": ("[lease]\nseconds = 1", "$.lease"),
    "a wrong type": ("[postgres]\npool = 'many'", "$.postgres.pool"),
    "a fraction of a whole": ("[postgres]\npool = 1.5", "$.postgres.pool"),
    "a value for a table": ("postgres = 'x'", "$.postgres"),
    "a list for a value": ("[kafka]\nbootstrap = ['a:1']", "$.kafka.bootstrap"),
    "a wrong item": ("[queues]\ncpu_segments = [500, 'long']", "$.queues.cpu_segments[1]"),
    "a time that is none": ("[lease]\nlease_seconds = nan", "$.lease.lease_seconds"),
    "a time that has passed": ("[lease]\noffer_seconds = -1", "$.lease.offer_seconds"),
    "no end of time": (
        "[sandboxes]\nkept_unreferenced_seconds = inf",
        "$.sandboxes.kept_unreferenced_seconds",
    ),
    "no connection": ("[postgres]\npool = 0", "$.postgres.pool"),
    "segments that do not increase": ("[queues]\ncpu_segments = [500, 400]", "$.queues"),
    "no segments": ("[queues]\ncpu_segments = []", "$.queues"),
    "no such level": ("[log]\nlevel = 'loud'", "$.log.level"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_named_with_its_place(file: Path, what: str) -> None:
    text, place = WRONG[what]
    said = refusal(file, f"{text}\n{LEAST}" if text.startswith("postgres") else f"{LEAST}{text}\n")
    assert place in said
    assert str(file) in said


def test_what_is_missing_is_named(file: Path) -> None:
    assert "`auth`" in refusal(file, "")
    assert "`jwks`" in refusal(file, "[auth]\n")


def test_unknown_keys_in_lists_and_named_tables_are_named(file: Path) -> None:
    elements = (
        "[advertising]\ntoken_file = 't'\n[[elements]]\nsite = 'a'\n[[elements]]\nsite = 'b'\nslot = 3\n"
    )
    said = refusal(file, elements, kind=AdvertiserConfig)
    assert "`slot`" in said
    assert "$.elements[1]" in said
    shares = LEAST + "[matching.shares.lhcb.lhcb_user]\njob_shares = 10\n"
    said = refusal(file, shares, kind=MatcherConfig)
    assert "`job_shares`" in said
    assert "$.matching.shares" in said


def test_a_pilot_passes_over_keys_that_a_newer_submitter_writes(file: Path) -> None:
    pilot = "pilot_id = 'p'\nsite = 'A'\nce = 'ce'\nvo = 'v'\nslots = 1\ntoken_file = 't'\ndirectory = 'd'\n"
    newer = f"[pilot]\nidle_seconds = 7\nshift = 3\n{pilot}[sandboxes]\nurl = 'file:///s'\n[transfers.limits]\nfiles_more = 1\n"
    file.write_text(f"{newer}[resource.node]\ngpus = 2\n[energy]\nwatts = 5\n", "utf-8")
    taken = read(file, PilotConfig, {"WMS_PILOT__TURN": "1"}, strict=False)
    assert (taken.pilot.idle_seconds, taken.pilot.slots, taken.resource.node) == (7.0, 1, {"gpus": 2})
    file.write_text(newer.replace("idle_seconds = 7", "idle_seconds = -7"), "utf-8")
    with pytest.raises(Rejected, match="idle_seconds"):
        read(file, PilotConfig, {}, strict=False)


@pytest.mark.parametrize("text", ["[auth", "a = 1\na = 2", "key = nothing", "\x00", "a = 'ü\xff'"])
def test_what_is_no_toml_is_refused(file: Path, text: str) -> None:
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(Rejected) as caught:
        read(file, JobManagerConfig, {})
    assert caught.value.code == "CONFIG_INVALID"
    assert str(file) in caught.value.message


def test_a_missing_file_says_what_to_do(tmp_dir: Path) -> None:
    with pytest.raises(Rejected) as caught:
        read(tmp_dir / "none.toml", JobManagerConfig, {})
    assert caught.value.code == "CONFIG_MISSING"
    assert "--config" in caught.value.remedy
    with pytest.raises(Rejected):
        read(tmp_dir, JobManagerConfig, {})


def test_the_environment_goes_before_the_file(file: Path) -> None:
    environment = {
        "WMS_POSTGRES__URL": "postgresql://h/other",
        "WMS_POSTGRES__POOL": "12",
        "WMS_LEASE__LEASE_SECONDS": "3.5",
        "WMS_LOG__JSON": "false",
        "WMS_AUTH__JWKS": "/other.json",
        "WMS_SYSTEM": "is no key",
        "POSTGRES__URL": "is not ours",
    }
    read = config(file, LEAST + "[postgres]\nurl = 'postgresql://h/file'\n", environment)
    assert (read.postgres.url, read.postgres.pool) == ("postgresql://h/other", 12)
    assert (read.lease.lease_seconds, read.log.json, read.auth.jwks) == (3.5, False, "/other.json")


def test_the_environment_alone_will_do(file: Path) -> None:
    assert config(file, "", {"WMS_AUTH__JWKS": "/keys.json"}).auth.jwks == "/keys.json"


WRONG_VARIABLES = {
    "WMS_POSTGRES__POOL": ("many", "$.postgres.pool"),
    "WMS_POSTGRES__URLL": ("x", "urll"),
    "WMS_NOTHING__AT_ALL": ("x", "nothing"),
    "WMS_LOG__JSON": ("maybe", "$.log.json"),
    "WMS_AUTH__JWKS__DEEPER": ("x", "WMS_AUTH__JWKS__DEEPER"),
    "WMS_QUEUES__CPU_SEGMENTS__0": ("5", "WMS_QUEUES__CPU_SEGMENTS__0"),
    "WMS_QUEUES__CPU_SEGMENTS": ("5", "$.queues.cpu_segments"),
}


@pytest.mark.parametrize("name", WRONG_VARIABLES)
def test_a_wrong_variable_is_named(file: Path, name: str) -> None:
    value, place = WRONG_VARIABLES[name]
    text = LEAST + "[queues]\ncpu_segments = [500]\n"
    assert place in refusal(file, text, {name: value})


def test_a_service_ends_with_the_error_and_nothing_else(file: Path) -> None:
    file.write_text(LEAST + "[postgres]\nurll = 'x'\n")
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "services.job_manager", "--config", str(file)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    lines = ended.stderr.splitlines(keepends=True)
    imported = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    said = "".join(line for line in lines if not line.startswith("import time:"))
    assert ended.returncode == 2
    assert said.startswith("job_manager: ")
    assert "`urll`" in said
    assert "Traceback" not in said
    assert "structlog.dev" in imported
    assert "rich.console" not in imported, "nothing that it prints needs it"
