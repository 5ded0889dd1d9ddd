"""Descriptions in JSON: objects, arrays and lines."""

import json
import time

import msgspec
import pytest
from hypothesis import given, settings

from tests.unit.jobdesc.problems import VALUES, problems
from wms.errors import Rejected
from wms.jobdesc import JobDescription, read, read_json
from wms.jobdesc.from_json import too_deep

ONE = {"executable": "./a", "wall_time": None}


@pytest.mark.parametrize(
    ("document", "count"),
    [
        (ONE, 1),
        ([ONE, ONE], 2),
        ({"jobs": [ONE], "defaults": {"cpu_time": 5}}, 1),
        ({"job": ONE}, 1),
    ],
)
def test_json_objects_and_arrays(document: object, count: int) -> None:
    assert len(read(json.dumps(document).encode())) == count
    assert len(read(json.dumps(document, indent=2).encode())) == count


def test_json_lines() -> None:
    assert len(read(b'\xef\xbb\xbf{"executable": "a"}\r\n\n{"executable": "b"}\n')) == 2
    assert len(read(b'{"executable": "a"}\n')) == 1


def test_problems_of_json_lines_name_their_line() -> None:
    found = problems(b'{"executable": "a"}\n\n{"executable": }\n{"executable": "c", "priority": 11}\n{}\n')
    assert [(problem.place, problem.line) for problem in found] == [
        ("jobs[1]", 3),
        ("jobs[2].priority", 4),
        ("jobs[3].executable", 5),
    ]


def test_refusals_of_the_document_as_a_whole() -> None:
    def code(data: bytes, limit: int = 1000) -> str:
        with pytest.raises(Rejected) as refused:
            read_json(data, limit)
        return refused.value.code

    assert code(b" " * 1001) == "DOCUMENT_TOO_LARGE"
    assert code(b'{"executable": "\xff"}') == "NOT_UTF8"
    assert code(b"[" + b",".join([b'{"executable": "a", "array": 1000000}'] * 2) + b"]") == "TOO_MANY_JOBS"


@settings(deadline=None)
@given(VALUES)
def test_depth_is_measured_as_the_parser_sees_it(value: object) -> None:
    def depth(tree: object) -> int:
        match tree:
            case list():
                return 1 + max(map(depth, tree), default=0)
            case dict():
                return 1 + max(map(depth, tree.values()), default=0)
        return 0

    text = json.dumps(value)
    for limit in range(6):
        assert too_deep(text, limit=limit) == (depth(value) > limit)


def test_ten_thousand_json_lines_are_read_quickly() -> None:
    jobs = [JobDescription(executable="/bin/echo", arguments=(str(i),), name=f"j{i}") for i in range(10_000)]
    data = b"\n".join(map(msgspec.json.encode, jobs))
    started = time.process_time()
    assert read(data) == jobs
    assert time.process_time() - started < 3  # the goal is 1 s; a loaded machine gets some slack
