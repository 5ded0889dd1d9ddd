"""Searches through one user's index servers: beside the steps, few at a time, remembered for a while, and true to published rules."""

import asyncio

from services.resource_broker.index_searches import (
    DISCOVERING,
    SEARCHES_LIMIT,
    AwaitedSearch,
    IndexSearches,
    KnownElements,
    admitting,
)
from tests.waiting import eventually
from wms.discovery.address import Address
from wms.discovery.discovery import Discovery
from wms.discovery.server_answers import FoundElement, ServerAnswer
from wms.glue.glue1 import GlueComputingElement
from wms.ids import CeId, Identity, JobId

ALICE = Identity("alice", "physics", "lhcb")


def element(name: str, *rules: str) -> FoundElement:
    return FoundElement(
        site="A", glue=GlueComputingElement(id=f"A/{name}", name=name, access_rules=tuple(rules))
    )


class Held:
    """Index servers that answer when they are let go."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()

    async def ask(self, _: Address) -> ServerAnswer:
        await self.let_go.wait()
        return ServerAnswer(elements=(element("open"), element("closed", "VO:atlas")))


LISTS = [(f"https://{n}.example.org/",) for n in range(SEARCHES_LIMIT + 3)]


async def test_one_user_has_few_searches_at_a_time_and_the_jobs_over_wait_for_their_turn() -> None:
    held, told = Held(), set[JobId]()
    searches = IndexSearches(ALICE, Discovery({"https": held}), 30.0, lambda: 0.0, told.update)
    found = [searches.known(each, JobId(n)) for n, each in enumerate(LISTS)]
    assert found[:SEARCHES_LIMIT] == [DISCOVERING] * SEARCHES_LIMIT
    queued = [each for each in found[SEARCHES_LIMIT:] if isinstance(each, AwaitedSearch)]
    assert [each.reason for each in queued] == ["SEARCH_QUEUED"] * 3
    assert "3 jobs wait for a turn" in queued[-1].text
    assert searches.under_way == SEARCHES_LIMIT
    held.let_go.set()
    await eventually(lambda: told == set(range(len(LISTS))))
    known = searches.known(LISTS[0], JobId(0))
    assert isinstance(known, KnownElements)
    assert known.places == {CeId("A", "open")}
    assert searches.known(LISTS[-1], JobId(len(LISTS) - 1)) == DISCOVERING
    await searches.close()


async def test_a_job_that_asks_again_keeps_its_turn() -> None:
    held, told = Held(), list[set[JobId]]()
    searches = IndexSearches(ALICE, Discovery({"https": held}), 30.0, lambda: 0.0, told.append)
    for _ in range(2):
        for n, each in enumerate(LISTS):
            searches.known(each, JobId(n))
    held.let_go.set()
    await eventually(lambda: len(told) == SEARCHES_LIMIT)
    called = [each - set(range(SEARCHES_LIMIT)) for each in told]
    assert called[0] == {SEARCHES_LIMIT}, "one search has ended, and the job that asked first may search"
    await searches.close()


def test_elements_that_do_not_admit_the_owner_are_left_out() -> None:
    found = [
        element("open"),
        element("lhcb", "VO:lhcb"),
        element("atlas", "VO:atlas"),
        element("her", "alice"),
    ]
    assert {each.ce for each in admitting(found, ALICE)} == {"open", "lhcb", "her"}


def test_a_rejection_tells_what_servers_without_answers_said() -> None:
    known = KnownElements(frozenset([CeId("A", "ce")]), 0.0, ("https://dead/: failed " + "x" * 10_000,))
    assert known.rejection(CeId("A", "ce")) == ""
    why = known.rejection(CeId("B", "ce"))
    assert why.startswith("NOT_INDEXED: none of the job's index servers leads there; https://dead/: failed")
    assert len(why) < 400
