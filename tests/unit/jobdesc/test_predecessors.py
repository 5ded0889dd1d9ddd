"""Predecessors: how descriptions name them, and what orders do to a job that waits for them."""

import msgspec
import pytest

from wms.ids import Epoch, JobId, TaskQueueId
from wms.job.job import Job
from wms.job.state import State
from wms.jobdesc.description import JobDescription
from wms.jobdesc.from_json import read_json
from wms.jobdesc.from_toml import read_toml
from wms.jobdesc.kind import JobKinds
from wms.jobdesc.predecessors import Predecessors, in_words, predecessors_of, ranges_of
from wms.jobdesc.validation import validate


def described(**fields: object) -> JobDescription:
    return JobDescription(executable="true", **fields)  # type: ignore[arg-type]


def test_ids_are_numbers_and_texts_of_ranges() -> None:
    assert ranges_of((7, "9-12,8", "20")) == ((7, 12), (20, 20))
    found = predecessors_of(described(after=(1, 2), after_any=("2-5",), input_from=(9,)))
    assert found == Predecessors(((1, 5), (9, 9)), ((2, 5),), ((9, 9),))
    assert predecessors_of(described()) is None


def test_files_name_them_as_the_command_line_does() -> None:
    (toml,) = read_toml(b'executable = "true"\nafter = [12, "20-29"]\ninput_from = [12]\n')
    (json,) = read_json(b'{"executable": "true", "after": [12, "20-29"], "input_from": [12]}')
    assert toml == json == described(after=(12, "20-29"), input_from=(12,))


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        (((7, 7),), "job 7"),
        (((7, 8), (10, 10)), "jobs 7-8,10"),
        (tuple((2 * n, 2 * n) for n in range(1, 13)), "jobs 2,4,6,8,10,12,14,16,18,20,..."),
    ],
)
def test_people_are_told_of_a_few(ranges: tuple[tuple[int, int], ...], words: str) -> None:
    assert in_words(ranges) == words


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"after": (-1,)}, "after[0]"),
        ({"after": ("1,,2",)}, "after[0]"),
        ({"after": (str(2**63),)}, "after[0]"),
        ({"after": ("1-1000000", 10**7)}, "after"),
        ({"after": ("1-600000",), "after_any": ("700000-1300000",)}, "after"),
        ({"after": tuple("1," * 40 + "1" for _ in range(900))}, "after"),
        ({"after_any": (True,)}, "after_any[0]"),
        ({"input_from": ("1-101",)}, "input_from"),
        (
            {"input_from": ("1-100",), "input_sandbox": ({"sha256": "0" * 64, "size": 1},)},
            "input_from",
        ),
        (
            {"input_sandbox": ({"sha256": "0" * 64, "size": 1, "directory": "../x"},)},
            "input_sandbox[0].directory",
        ),
    ],
)
def test_what_names_no_jobs_or_too_many_is_refused(fields: dict[str, object], place: str) -> None:
    raw = msgspec.json.encode({"executable": "true", **fields})
    with pytest.raises(Exception, match="problem") as refused:
        read_json(raw)
    assert refused.value.problems[0].place == place  # type: ignore[attr-defined]


def test_a_description_that_was_judged_as_a_kind_still_says_what_it_waits_for() -> None:
    kinds = JobKinds()
    first = described(after=(12,), arguments=("a",))
    assert not validate(first)
    kinds.remember(first)
    same = kinds.read(msgspec.json.encode(described(after=(12,), arguments=("b",))))
    assert same is not None
    assert predecessors_of(same.kind.description) == Predecessors(((12, 12),))
    assert kinds.read(msgspec.json.encode(described(after=(13,), arguments=("b",)))) is None


def job(state: State = State.HELD) -> Job:
    return Job(
        job_id=JobId(9), state=state, epoch=Epoch(0), event_seq=3, attempts=0, max_attempts=3, stop_requested="",
        tq_id=TaskQueueId(1), user_priority=1.0, owner="ann", owner_group="g", vo="v",
    )  # fmt: skip
