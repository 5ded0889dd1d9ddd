"""Requests about jobs and the messages that they become."""

from datetime import UTC, datetime

import pytest

from services.gateway.job_routes import ROUTES, JobList, JobOrder, JobSelection, JobTally, LogPiece
from services.gateway.route import Requester, Route
from wms.errors import Rejected
from wms.messages import commands, queries

ME = Requester("an-id", "a-client")


def route(method: str, path: str) -> Route:
    (found,) = [each for each in ROUTES if (each.method, each.path) == (method, path)]
    return found


def test_a_list_has_the_selectors_of_the_command_line() -> None:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    given = JobList(jobs="1,5-9,6", state="held,ended", name="sim*", since=since, after=3, newest=True)
    query = route("GET", "/jobs").message(ME, given)
    assert isinstance(query, queries.ListJobs)
    assert query.selector.ids == ((1, 1), (5, 9))
    assert {"Held", "Done", "Failed"} <= set(query.selector.states)
    assert (query.selector.name, query.selector.changed_since) == ("sim*", since)
    assert (query.query_id, query.client, query.after, query.newest) == ("an-id", "a-client", 3, True)


@pytest.mark.parametrize(("path", "given"), [("/jobs", JobList()), ("/jobs/counts", JobTally())])
def test_a_list_without_a_condition_is_of_all_jobs(path: str, given: JobSelection) -> None:
    query = route("GET", path).message(ME, given)
    assert isinstance(query, queries.ListJobs | queries.CountJobs)
    assert query.selector.everything


def test_a_time_without_its_zone_is_refused() -> None:
    with pytest.raises(Rejected, match="zone"):
        JobSelection(since=datetime(2026, 1, 1)).selector()


def test_an_order_names_jobs_or_says_everything() -> None:
    orders = route("POST", "/orders")
    with pytest.raises(Rejected, match="NOTHING_SELECTED"):
        orders.message(ME, None, JobOrder(action="kill", selection=JobSelection()))
    order = orders.message(ME, None, JobOrder(action="kill", selection=JobSelection(everything=True)))
    assert isinstance(order, commands.Control)
    assert (order.command_id, order.selector.everything) == ("an-id", True)


def test_a_log_is_read_from_a_place_on() -> None:
    peek = route("GET", "/jobs/{job_id}/logs").message(ME, LogPiece(job_id=7, stream="stderr", offset=100))
    assert isinstance(peek, queries.PeekJob)
    assert (peek.job_id, peek.stream, peek.offset) == (7, "stderr", 100)
