"""What a few bytes may expand to is judged before anything is expanded."""

import json
import resource

import pytest

from wms.errors import Rejected
from wms.jobdesc import read_json
from wms.jobdesc.expansion import Expansion, at_a_service

MIB = 1024


def refusal(document: object, expansion: Expansion) -> str:
    with pytest.raises(Rejected) as refused:
        read_json(json.dumps(document).encode(), expansion=expansion)
    return refused.value.code


def test_many_long_series_take_neither_time_nor_memory() -> None:
    bomb = {
        "executable": "x",
        "array": 1_000_000,
        "parameters": {f"p{n}": {"start": 0, "step": 1} for n in range(20)},
    }
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert refusal(bomb, Expansion()) == "EXPANDS_TOO_FAR"
    assert refusal([bomb] * 8, at_a_service()) == "EXPANDS_TOO_FAR"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 8 * MIB


def test_all_descriptions_of_a_document_share_what_it_may_expand_to() -> None:
    one = {"executable": "x", "parameters": {"a": {"count": 6_000}}}
    assert len(read_json(json.dumps(one).encode(), expansion=at_a_service())) == 1
    assert refusal([one, one], at_a_service()) == "EXPANDS_TOO_FAR"


def test_defaults_are_counted_for_each_job_that_gets_them() -> None:
    many = {"defaults": {"executable": "x", "arguments": ["y" * 30_000]}, "jobs": [{}] * 1_000}
    assert len(read_json(json.dumps(many).encode())) == 1_000
    assert refusal(many, at_a_service()) == "EXPANDS_TOO_FAR"


def test_a_message_of_a_service_has_no_series() -> None:
    assert (
        refusal({"executable": "x", "parameters": {"a": {"count": 2}}}, Expansion(0, 0)) == "EXPANDS_TOO_FAR"
    )
