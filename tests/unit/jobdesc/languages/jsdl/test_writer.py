"""What is written as JSDL is read as an equal description, whatever it says."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert, to_builtins

from tests.unit.jobdesc.descriptions import of
from wms.errors import Rejected
from wms.jobdesc import JobDescription, validate
from wms.jobdesc.languages.jsdl import read_jsdl, write_jsdl
from wms.jobdesc.preferences import JobBenchmark, JobPreferences
from wms.jobdesc.staged_file import InputFile, OutputFile

TEXT = st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.sampled_from("\t\n {}"), max_size=12)
LINE = TEXT.filter(lambda text: text.isprintable() and text != "")
SIZE = st.integers(1, 10**6)
SECONDS = st.floats(0.001, 1e6)
NAME = st.sampled_from(["a", "b/c", "prog", "out.dat"])
URL = st.sampled_from(["http://x/a", "s3://b/c d%20", "root://h//p?q={n}"]).filter(lambda url: " " not in url)
INPUT = st.builds(
    InputFile,
    name=NAME,
    sources=st.lists(URL, min_size=1, max_size=3).map(tuple),
    size=st.none() | SIZE,
    checksum=st.sampled_from(["", "adler32:0123abcd"]),
    executable=st.booleans(),
)
OUTPUT = st.builds(
    OutputFile, name=NAME, targets=st.lists(URL, min_size=1, max_size=3).map(tuple), optional=st.booleans()
)
PREFERENCES = st.builds(
    JobPreferences,
    benchmarks=st.lists(st.builds(JobBenchmark, name=LINE, result=SECONDS, seconds=SECONDS), max_size=2).map(tuple),
    stage_in_seconds=st.none() | SECONDS,
    earliest_start=st.none() | st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC)),
    latest_start_after=st.none() | SECONDS,
    objective=st.sampled_from(["earliest-completion", "earliest-start"]),
    reservation=st.booleans(),
    flexible=st.booleans(),
)  # fmt: skip
DESCRIPTIONS = st.fixed_dictionaries(
    {"executable": st.sampled_from(["prog", "./prog", "/bin/sh", " odd name "])},
    optional={
        "arguments": st.lists(TEXT, max_size=4).map(tuple),
        "environment": st.dictionaries(st.sampled_from(["A", "PATH", "_x1"]), TEXT, max_size=3),
        "name": LINE,
        "job_group": LINE,
        "cpu_time": SIZE,
        "wall_time": SIZE,
        "memory_mb": SIZE,
        "max_memory_mb": SIZE,
        "disk_mb": SIZE,
        "processors": st.integers(1, 64),
        "min_processors": st.integers(1, 8),
        "max_processors": st.integers(8, 64),
        "whole_node": st.booleans(),
        "grid_ces": st.lists(st.sampled_from(["ce1.x", "ce2.x"]), max_size=2).map(tuple),
        "tags": st.just(("gpu",)),
        "requirements": st.just("other.A > 1"),
        "priority": st.integers(0, 10),
        "attributes": st.just({"Note": "x", "Many": (1, 2.5, True)}),
        "inputs": st.lists(INPUT, max_size=2, unique_by=lambda each: each.name).map(tuple),
        "outputs": st.lists(OUTPUT, max_size=2, unique_by=lambda each: each.name).map(tuple),
        "stdin": NAME,
        "stdout": NAME,
        "preferences": PREFERENCES,
        "array": st.integers(1, 5),
        "success_exit_codes": st.just((0, 3)),
    },
).map(lambda fields: convert(to_builtins(fields), JobDescription))


def back(description: JobDescription) -> list[JobDescription]:
    return read_jsdl(write_jsdl([description]).text.encode()).jobs()


@settings(max_examples=60, deadline=None)
@given(DESCRIPTIONS.filter(lambda each: not validate(each)))
def test_what_is_written_is_read_as_an_equal_description(description: JobDescription) -> None:
    assert back(description) == [description]


@pytest.mark.parametrize(
    "fields",
    [
        {"executable": "prog", "inputs": (InputFile(name="prog", sources=("http://x/a",)),)},
        {"arguments": ("{seed}", "x{n}"), "parameters": {"seed": ("1", "2")}},
        {"arguments": ("\ufffe",), "name": "\u00e4"},
        {"array": 1_000_000, "arguments": ("{n}",)},
    ],
)
def test_arrays_and_odd_texts_come_back(fields: dict[str, Any]) -> None:
    assert back(of(**fields)) == [of(**fields)]


def test_an_array_has_its_values_for_other_systems_too() -> None:
    text = write_jsdl([of(arguments=("--seed", "{seed}"), parameters={"seed": ("17", "19")})]).text
    assert "//posix:Argument[2]" in text
    assert text.count("sweepfunc:Value>") == 4


def test_the_report_tells_what_other_systems_cannot_read() -> None:
    report = write_jsdl([of(arguments=("a",), priority=5)]).report
    assert {each.element: each.fate for each in report.entries} == {
        "executable": "kept",
        "arguments": "kept",
        "priority": "translated",
    }


def test_a_document_holds_one_job() -> None:
    with pytest.raises(Rejected, match="ONE_JOB_A_DOCUMENT"):
        write_jsdl([of(), of()])
