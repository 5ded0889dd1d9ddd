"""Descriptions of a submission: read whole or at a glance, and every problem of each named."""

from typing import Any

import msgspec
import pytest

from services.job_manager.submission.parse import DescriptionReader
from wms.errors import Rejected
from wms.ids import CommandId
from wms.jobdesc.conflicts import ARRAY_LIMIT
from wms.jobdesc.kind import PartlyRead
from wms.jobdesc.problem import InvalidDescription
from wms.messages.commands import Submit


def read(reader: DescriptionReader, *jobs: dict[str, Any] | bytes) -> list[PartlyRead]:
    raws = (
        each if isinstance(each, bytes) else msgspec.json.encode({"executable": "x", **each}) for each in jobs
    )
    steps = reader.read(Submit(command_id=CommandId("c"), jobs=tuple(map(msgspec.Raw, raws))))
    try:
        while True:
            next(steps)
    except StopIteration as done:
        found: list[PartlyRead] = done.value
        return found


def bodies(found: list[PartlyRead]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(each.text) for each in found]


def test_descriptions_are_stored_as_they_were_sent() -> None:
    jobs: list[dict[str, Any]] = [
        {"name": "a", "arguments": ["1"]},
        {"name": "b", "arguments": ["2"]},
        {"cpu_time": 60},
    ]
    found = read(DescriptionReader(), *jobs)
    assert bodies(found) == [{"executable": "x", **each} for each in jobs]
    assert [each.name for each in found] == ["a", "b", ""]


def test_a_kind_that_is_known_is_read_at_a_glance_and_means_the_same() -> None:
    reader = DescriptionReader()
    (first,) = read(reader, {"arguments": ["1"]})
    (again,) = read(reader, {"arguments": ["2"]})
    (whole,) = read(DescriptionReader(), {"arguments": ["2"]})
    assert again.kind is first.kind
    assert (again.text, again.name) == (whole.text, whole.name)


def test_what_other_tools_write_is_stored_in_our_words() -> None:
    loose = b'{ "arguments" : ["1"] ,\n "executable":"x", "cpu_time":86400 }'
    (found,) = read(DescriptionReader(), loose)
    assert found.text == msgspec.json.encode(msgspec.json.decode(found.text)).decode()
    assert bodies([found])[0]["arguments"] == ["1"]


def test_the_lists_of_an_array_are_not_stored_with_it() -> None:
    (found,) = read(DescriptionReader(), {"arguments": ["{p}"], "parameters": {"p": ["a", "b"]}})
    assert found.kind.jobs == 2
    assert bodies([found])[0].get("parameters", {"p": []})["p"] == []


def test_every_problem_of_every_job_is_told_with_its_place() -> None:
    with pytest.raises(InvalidDescription) as refused:
        read(
            DescriptionReader(), {}, {"cpu_time": -1, "memory_mb": -1}, {"nonsense": 1}, b'{"executable": ""}'
        )
    places = {problem.place for problem in refused.value.problems}
    assert {"jobs[1].cpu_time", "jobs[1].memory_mb", "jobs[2].nonsense", "jobs[3].executable"} <= places
    assert not any(place.startswith("jobs[0]") for place in places)


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(InvalidDescription):
        read(DescriptionReader(), b'{"executable":"x","executable":"y"}')


def test_jobs_of_all_descriptions_together_are_bounded() -> None:
    half = {"array": ARRAY_LIMIT // 2}
    assert len(read(DescriptionReader(), half, half)) == 2
    with pytest.raises(Rejected, match="in one submission") as refused:
        read(DescriptionReader(), half, half, {})
    assert refused.value.code == "TOO_MANY_JOBS"


def test_reading_pauses_at_each_description_that_is_read_whole() -> None:
    reader = DescriptionReader()
    raws = tuple(msgspec.Raw(msgspec.json.encode({"executable": "x", "cpu_time": 60 + n})) for n in range(10))
    assert sum(1 for _ in reader.read(Submit(command_id=CommandId("c"), jobs=raws))) >= 10


@pytest.mark.parametrize("raw", [b'{"executable":"x","name":"\xa9"}', b'{"executable":' + b"[" * 100_000])
def test_what_is_no_json_is_refused(raw: bytes) -> None:
    with pytest.raises(Rejected):
        read(DescriptionReader(), raw)
