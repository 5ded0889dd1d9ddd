"""Index servers that submissions name: asked beside the steps, within bounds, and remembered for a while."""

import asyncio

from services.resource_broker.config import RequestedIndexSettings
from services.resource_broker.index_searches import DISCOVERING, KnownElements
from services.resource_broker.requested_indexes import USERS_LIMIT, RequestedIndexes
from tests.waiting import eventually
from wms.discovery.address import Address
from wms.discovery.server_answers import FoundElement, ServerAnswer
from wms.errors import Unavailable
from wms.glue.glue1 import GlueComputingElement
from wms.ids import CeId, Identity, JobId

ALICE = Identity("alice", "physics", "lhcb")
SERVERS = ("https://index.example.org/glue",)


def element(name: str, *rules: str) -> FoundElement:
    return FoundElement(
        site="A", glue=GlueComputingElement(id=f"A/{name}", name=name, access_rules=tuple(rules))
    )


class Servers:
    """Index servers with one element; `dead` ones do not answer."""

    def __init__(self, *, dead: bool = False) -> None:
        self.asked = 0
        self.dead = dead

    async def ask(self, address: Address) -> ServerAnswer:
        self.asked += 1
        if self.dead:
            raise Unavailable(f"{address.url}: refused")
        return ServerAnswer(elements=(element("ce"),))


def indexes(servers: Servers, now: list[float], *hosts: str) -> RequestedIndexes:
    settings = RequestedIndexSettings(hosts=list(hosts or ("*.example.org",)), fresh_seconds=30.0)
    return RequestedIndexes(settings, {"https": servers}, lambda: now[0])


async def test_a_search_runs_beside_and_tells_whose_job_it_was_for() -> None:
    servers, now = Servers(), [0.0]
    each = indexes(servers, now)
    assert each.known(SERVERS, ALICE, JobId(1)) == DISCOVERING
    assert each.known(SERVERS, ALICE, JobId(2)) == DISCOVERING
    assert each.searches == 1
    await eventually(lambda: each.found == {1, 2})
    known = each.known(SERVERS, ALICE, JobId(1))
    assert isinstance(known, KnownElements)
    assert known.places == {CeId("A", "ce")}
    assert servers.asked == 1
    now[0] = 31.0
    assert each.known(SERVERS, ALICE, JobId(1)) == DISCOVERING
    await each.close()


async def test_an_answer_is_renewed_before_its_end_so_that_no_job_waits() -> None:
    now = [0.0]
    each = indexes(Servers(), now)
    each.known(SERVERS, ALICE, JobId(1))
    await eventually(lambda: each.found == {1})
    assert each.known(SERVERS, ALICE, JobId(2)) != DISCOVERING
    assert each.searches == 0
    now[0] = 16.0
    assert each.known(SERVERS, ALICE, JobId(3)) != DISCOVERING
    assert each.searches == 1
    await eventually(lambda: each.searches == 0)
    now[0] = 45.0
    assert each.known(SERVERS, ALICE, JobId(4)) != DISCOVERING
    assert each.found == {1}, "nobody waited"
    await each.close()


async def test_a_dead_server_is_told_and_leads_nowhere() -> None:
    each = indexes(Servers(dead=True), [0.0])
    each.known(SERVERS, ALICE, JobId(1))
    await eventually(lambda: each.found == {1})
    known = each.known(SERVERS, ALICE, JobId(1))
    assert isinstance(known, KnownElements)
    assert known.places == frozenset()
    assert "refused" in known.troubles[0]
    await each.close()


def test_only_hosts_that_the_configuration_allows_are_asked() -> None:
    each = indexes(Servers(), [0.0])
    assert each.refusal(SERVERS) == ""
    assert "allows no index server" in each.refusal(("https://evil.example.com/",))
    assert "allows no index server" in each.refusal((*SERVERS, "http://127.0.0.1:5432/"))
    assert each.refusal(("file:///etc/passwd",)).startswith("file")
    assert each.refusal(("no address",))


class Deaf:
    """Index servers that never answer, but for one host's."""

    async def ask(self, address: Address) -> ServerAnswer:
        if address.host.startswith("deaf"):
            await asyncio.Event().wait()
        return ServerAnswer(elements=(element("ce"),))


async def test_a_user_whose_servers_never_answer_keeps_no_other_user_waiting() -> None:
    settings = RequestedIndexSettings(hosts=["*"])
    each = RequestedIndexes(settings, {"https": Deaf()})
    for n in range(500):
        leads = tuple(f"https://deaf-{n}-{m}.example.org/" for m in range(8))
        each.known(leads, Identity("mallory", "orcs", "mordor"), JobId(n))
    await asyncio.sleep(0)
    each.known(SERVERS, ALICE, JobId(1_000))
    await eventually(lambda: each.found == {1_000})
    await each.close()


def user(n: int) -> Identity:
    return Identity(f"user-{n}", "users", "vo")


async def test_users_unused_for_longest_are_forgotten() -> None:
    each = indexes(Servers(), [0.0])
    for n in range(USERS_LIMIT + 10):
        each.known(SERVERS, user(n), JobId(n))
        if n % 10 == 0:
            await eventually(lambda: not each.searches)
    assert list(each._users)[-1] == user(USERS_LIMIT + 9)
    assert user(0) not in each._users
    assert len(each._users) == USERS_LIMIT
    await each.close()


class Held(Servers):
    """Index servers that answer when they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = asyncio.Event()

    async def ask(self, address: Address) -> ServerAnswer:
        await self.let_go.wait()
        return await super().ask(address)


async def test_no_search_is_cancelled_for_another_user_who_is_told_when_one_has_ended() -> None:
    servers = Held()
    each = indexes(servers, [0.0])
    for n in range(USERS_LIMIT):
        assert each.known(SERVERS, user(n), JobId(n)) == DISCOVERING
    late = user(USERS_LIMIT)
    for job_id in (1_000, 1_001):
        answer = each.answer(SERVERS, late, JobId(job_id))
        assert answer.awaited is not None
        assert answer.awaited.reason == "SEARCH_QUEUED"
        assert "1 users wait" in answer.awaited.text
    assert each.searches == USERS_LIMIT
    servers.let_go.set()
    await eventually(lambda: each.found == {*range(USERS_LIMIT), 1_000})
    assert each.known(SERVERS, late, JobId(1_000)) == DISCOVERING
    await each.close()
