"""What requests bring, bounded before it is parsed."""

from typing import Any

import msgspec
import pytest

from services.gateway import request_parsing
from services.gateway.job_routes import JobList, OneJob
from tests.unit.gateway.requested import a_request, a_sent_request
from wms.errors import Rejected


def test_parameters_come_from_path_and_query() -> None:
    assert request_parsing.parameters(a_request(path={"job_id": "7"}), OneJob) == OneJob(job_id=7)
    given = request_parsing.parameters(a_request("everything=true&limit=5&state=held"), JobList)
    assert (given.everything, given.limit, given.state) == (True, 5, "held")


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "colour=red", "limit=1&limit=1", "newest=perhaps"]
)
def test_a_parameter_that_is_wrong_is_refused(query: str) -> None:
    with pytest.raises(Rejected, match="BAD_PARAMETER"):
        request_parsing.parameters(a_request(query), JobList)


def test_what_is_in_the_path_may_not_be_in_the_query_too() -> None:
    with pytest.raises(Rejected, match="twice"):
        request_parsing.parameters(a_request("job_id=8", {"job_id": "7"}), OneJob)


async def test_a_body_in_pieces_is_one() -> None:
    assert await request_parsing.whole(a_sent_request(b"ab", b"", b"cd"), 4, 5) == b"abcd"


@pytest.mark.parametrize("headers", [{}, {"content_length": "5"}, {"content_length": "9" * 50}])
async def test_a_body_over_the_limit_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Rejected, match="BODY_TOO_LARGE"):
        await request_parsing.whole(a_sent_request(b"abc", b"de", **headers), 4, 5)


async def test_a_compressed_body_is_refused_and_not_taken_for_a_malformed_one() -> None:
    request_parsing.require_type(a_request(content_type="application/json"), "application/json")
    request = a_request(content_type="application/json", content_encoding="gzip")
    with pytest.raises(Rejected, match="Content-Encoding"):
        request_parsing.require_type(request, "application/json")


async def test_a_body_that_does_not_come_is_given_up() -> None:
    request = a_request()
    request._receive = _never
    with pytest.raises(Rejected, match="BODY_TOO_SLOW"):
        await request_parsing.whole(request, 4, 0.01)


async def test_a_sender_who_goes_away_is_noticed() -> None:
    async def gone() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    request = a_request()
    request._receive = gone
    with pytest.raises(Rejected, match="BODY_CUT"):
        await request_parsing.whole(request, 4, 5)


async def _never() -> Any:
    import asyncio

    await asyncio.Event().wait()


def test_a_key_is_taken_and_a_request_without_one_has_its_own() -> None:
    assert request_parsing.request_id(a_request(idempotency_key="monday")) == "monday"
    assert request_parsing.request_id(a_request()) != request_parsing.request_id(a_request())
    with pytest.raises(Rejected, match="BAD_ID"):
        request_parsing.request_id(a_request(idempotency_key="x" * 200))


def test_a_type_is_read_without_its_parameters() -> None:
    request = a_request(content_type="Application/JSON; charset=utf-8")
    assert request_parsing.require_type(request, "application/json") == "application/json"
    with pytest.raises(Rejected, match="MEDIA_TYPE"):
        request_parsing.require_type(request, "application/x-ndjson")


def test_an_answer_tells_nothing_that_was_not_sent() -> None:
    with pytest.raises(Rejected) as refused:
        request_parsing.parameters(a_request("limit=" + "9" * 5_000), JobList)
    assert len(msgspec.json.encode(str(refused.value))) < 3_000
