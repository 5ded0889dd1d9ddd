"""Files by URL and job preferences: what is accepted, and how each fault is named."""

from datetime import UTC, datetime
from typing import Any

import pytest

from wms.jobdesc import InvalidDescription, read_json, read_toml
from wms.jobdesc.array import expand
from wms.jobdesc.description import is_brokered
from wms.jobdesc.preferences import JobBenchmark, JobPreferences
from wms.jobdesc.validation import check_fields, validate

WHOLE = """
executable = "analyse"
stdin = "cards.txt"
index_servers = ["https://index.example.org/glue.xml"]
dispatch = "pilot"
array = 2

[[inputs]]
name = "data/run.root"
sources = ["https://one.example.org/run-{n}.root", "root://two.example.org//run-{n}.root"]
size = 17
checksum = "adler32:0011aaff"

[[outputs]]
name = "result-{n}.root"
targets = ["s3://bucket/result-{n}.root"]
optional = true

[preferences]
objective = "earliest-start"
earliest_start = 2026-08-11T10:00:00Z
latest_start_after = 1800
stage_out_seconds = 600.5
benchmarks = [{name = "specFP2000", result = 1750, seconds = 2700}]
"""


def faults(**fields: Any) -> list[tuple[str, str]]:
    return [(place, message) for place, message, _ in check_fields({"executable": "a", **fields})]


def test_a_document_with_files_and_preferences_is_read() -> None:
    (found,) = read_toml(WHOLE.encode())
    assert is_brokered(found)
    assert validate(found) == []
    assert found.preferences == JobPreferences(
        objective="earliest-start",
        earliest_start=datetime(2026, 8, 11, 10, tzinfo=UTC),
        latest_start_after=1800,
        stage_out_seconds=600.5,
        benchmarks=(JobBenchmark(name="specFP2000", result=1750, seconds=2700),),
    )
    one = expand(found, 1)
    assert one.inputs[0].sources[1] == "root://two.example.org//run-1.root"
    assert (one.outputs[0].name, one.outputs[0].targets) == ("result-1.root", ("s3://bucket/result-1.root",))


def test_a_time_may_be_text() -> None:
    (found,) = read_json(b'{"executable": "a", "preferences": {"latest_start": "2026-08-11T12:00:00+02:00"}}')
    assert found.preferences is not None
    assert found.preferences.latest_start == datetime(2026, 8, 11, 10, tzinfo=UTC)


def test_a_plain_job_is_not_brokered() -> None:
    (found,) = read_json(b'{"executable": "a", "inputs": [{"name": "a", "sources": ["file:///data/a"]}]}')
    assert not is_brokered(found)


@pytest.mark.parametrize(
    ("fields", "place", "said"),
    [
        ({"inputs": [{"name": "a"}]}, ".inputs[0].sources", "is missing"),
        ({"inputs": [{"name": "../a", "sources": ["file:///a"]}]}, ".inputs[0].name", "stay inside"),
        ({"inputs": [{"name": "a", "sources": []}]}, ".inputs[0].sources", "1 to 20"),
        ({"inputs": [{"name": "a", "sources": ["gopher://x/a"]}]}, ".inputs[0].sources[0]", "is no URL"),
        ({"inputs": [{"name": "a", "sources": ["https://me:pw@x/a"]}]}, ".inputs[0].sources[0]", "password"),
        (
            {"inputs": [{"name": "a", "sources": ["file:///a"], "checksum": "crc:1"}]},
            ".inputs[0].checksum",
            "is no name",
        ),
        ({"outputs": [{"name": "a", "target": "file:///a"}]}, ".outputs[0].target", "unknown key"),
        ({"preferences": {"objective": "cheapest"}}, ".preferences.objective", "must be"),
        ({"preferences": {"latest_start": "tomorrow"}}, ".preferences.latest_start", "must be a time"),
        ({"preferences": {"latest_start": "2026-08-11T10:00:00"}}, ".preferences.latest_start", "zone"),
        ({"preferences": {"latest_start": "9999-08-11T10:00:00Z"}}, ".preferences.latest_start", "years"),
        ({"preferences": {"stage_in_seconds": float("nan")}}, ".preferences.stage_in_seconds", "number"),
        ({"preferences": {"stage_in_seconds": 10**400}}, ".preferences.stage_in_seconds", "number"),
        (
            {"preferences": {"benchmarks": [{"name": "x", "result": 0, "seconds": 1}]}},
            ".preferences.benchmarks[0].result",
            "number",
        ),
        ({"index_servers": ["ldap://x"]}, ".index_servers[0]", "is no URL"),
        ({"dispatch": "mail"}, ".dispatch", "must be"),
        ({"tags": ["job:7"]}, ".tags[0]", "is no name"),
        ({"tags": ["JOB:7"]}, ".tags[0]", "is no name"),
    ],
)
def test_a_fault_is_named_with_its_place(fields: dict[str, Any], place: str, said: str) -> None:
    found, *_ = faults(**fields)
    assert found[0] == place
    assert said in found[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "preferences.earliest_start = 2026-08-11T10:00:00Z\npreferences.earliest_start_after = 5",
            "stands beside",
        ),
        (
            "preferences.earliest_start = 2026-08-11T10:00:00Z\npreferences.latest_start = 2026-08-11T09:00:00Z",
            "before earliest_start",
        ),
        ("coallocate = true\npreferences = {}", "single job"),
        ("coallocate = true\narray = 21\npreferences = {}", "21 jobs"),
        ("coallocate = true\narray = 2", "without preferences"),
        ("coallocate = true\narray = 2\npreferences = {reservation = false}", "needs reservations"),
        (
            'inputs = [{name = "a", sources = ["file:///a"]}, {name = "a", sources = ["file:///b"]}]',
            "2 times",
        ),
        (
            'parameters = {x = ["../../etc"]}\noutputs = [{name = "{x}", targets = ["file:///a"]}]',
            "no plain part",
        ),
    ],
)
def test_a_conflict_between_fields_is_named(text: str, said: str) -> None:
    with pytest.raises(InvalidDescription, match=said):
        read_toml(f'executable = "a"\n{text}'.encode())
