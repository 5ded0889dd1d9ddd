"""Searches through one user's index servers: beside the steps, few at a time, remembered for a while, and true to published rules."""

import asyncio

from services.resource_broker.index_searches import SEARCHES_LIMIT, IndexSearches, KnownElements, admitting
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


async def test_one_user_has_few_searches_at_a_time_and_waits_for_those_alone() -> None:
    held, told = Held(), set[JobId]()
    searches = IndexSearches(ALICE, Discovery({"https": held}), 30.0, lambda: 0.0, told.update)
    lists = [(f"https://{n}.example.org/",) for n in range(SEARCHES_LIMIT + 1)]
    assert [searches.known(each, JobId(n)) for n, each in enumerate(lists)] == [None] * len(lists)
    assert searches.under_way == SEARCHES_LIMIT
    held.let_go.set()
    await eventually(lambda: told == set(range(SEARCHES_LIMIT)))
    known = searches.known(lists[0], JobId(0))
    assert known is not None
    assert known.places == {CeId("A", "open")}
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
