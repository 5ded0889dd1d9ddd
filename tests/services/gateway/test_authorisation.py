"""Who may do what through the gateway, from one table: each operation by each kind of token, on a job and on what is everybody's.

The gateway decides nothing of this. The table shows that the services' rules hold through it, for every operation there is.
"""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from services.gateway.openapi import name_of
from services.gateway.operation import Operation
from services.gateway.routes import OPERATIONS
from tests.services.gateway.conftest import Door
from tests.services.gateway.held import INSERT, executed
from wms.auth.keys import load_key
from wms.auth.orders import OrderKeys, PilotKey
from wms.auth.payload_token import payload_token
from wms.auth.token import Claims, mint
from wms.ids import AttemptId, Epoch, JobId
from wms.runtime import clock

USER: dict[str, Any] = {"kind": "user", "owner": "alice", "group": "higgs", "vo": "atlas"}
BEARERS: dict[str, tuple[str, dict[str, Any]]] = {
    "owner": ("issuer.pem", USER),
    "other group": ("issuer.pem", USER | {"group": "top"}),
    "group mate": ("issuer.pem", USER | {"owner": "bob"}),
    "vo mate": ("issuer.pem", USER | {"owner": "carol", "group": "top"}),
    "stranger": ("issuer.pem", USER | {"owner": "dave", "vo": "cms"}),
    "monitor": ("issuer.pem", USER | {"owner": "mona", "group": "top", "rights": ["job_monitor"]}),
    "administrator": (
        "issuer.pem",
        USER | {"owner": "anna", "group": "top", "rights": ["job_administrator"]},
    ),
    "foreign administrator": (
        "issuer.pem",
        USER | {"owner": "fred", "vo": "cms", "rights": ["job_administrator"]},
    ),
    "operator": ("issuer.pem", USER | {"owner": "olga", "vo": "cms", "rights": ["operator"]}),
    "pilot": ("pilots.pem", USER | {"kind": "pilot", "pilot_id": "p1", "site": "cern", "ce": "ce1"}),
    "site": ("sites.pem", {"kind": "site", "owner": "advertiser", "site": "cern"}),
}
EVERYBODY = frozenset(BEARERS)
USERS = EVERYBODY - {"pilot", "site"}
DETAIL = frozenset({"owner", "administrator", "operator"})
"""Who sees a job in full, and may act on it."""
READS = DETAIL | {"payload"}
"""Who reads a job in full. The payload is that of the job, while its pilot holds the lease."""
SEES = DETAIL | {"monitor"}
"""Who sees that the job exists."""

REFUSED = {401, 403, 404}
NOTHING_TO_DO = {
    "NO_SUCH_SITE",
    "NO_SUCH_LETTER",
    "NO_SUCH_PARTITION",
    "NO_SUCH_INPUT",
    "NO_OUTPUT",
    "NOT_SET",
    "NOT_BROKERED",
    "NOT_REVOKED",
}
"""Codes of services that would have done it, and found nothing to do."""

ALLOWED: dict[str, tuple[frozenset[str], str, Any]] = {
    # operation: who may, the path, the body
    "get_jobs_job_id": (READS, "/jobs/{job}", None),
    "get_jobs_job_id_attempts": (READS, "/jobs/{job}/attempts", None),
    "get_jobs_job_id_timeline": (READS, "/jobs/{job}/timeline", None),
    "get_jobs_job_id_why": (READS, "/jobs/{job}/why", None),
    "get_jobs_job_id_logs": (DETAIL, "/jobs/{job}/logs", None),
    "get_jobs_job_id_output": (DETAIL, "/jobs/{job}/output", None),
    "get_jobs_job_id_ranking": (DETAIL, "/jobs/{job}/ranking", None),
    "get_attempts_job_id_epoch_inputs_sha256": (
        frozenset({"pilot", "payload"}),
        f"/attempts/{{job}}/1/inputs/{'ab' * 32}",
        None,
    ),
    "put_attempts_job_id_epoch_output": (
        frozenset({"pilot"}),
        "/attempts/{job}/1/output",
        b"an archive",
    ),
    "get_sites": (EVERYBODY, "/sites", None),
    "get_sites_site": (EVERYBODY, "/sites/nowhere", None),
    # A pilot is shown to its VO, so that users see what became of their jobs.
    "get_pilots_pilot_id": (
        EVERYBODY - {"stranger", "foreign administrator", "site"},
        "/pilots/p1",
        None,
    ),
    "get_plans": (EVERYBODY, "/plans", None),
    "get_queues": (EVERYBODY, "/queues", None),
    "get_pilots": (EVERYBODY, "/pilots", None),
    "post_pilot_orders": (USERS, "/pilot-orders", {"count": 1}),
    "get_pilot_orders": (EVERYBODY, "/pilot-orders", None),
    "get_shares": (EVERYBODY, "/shares", None),
    "get_limits": (EVERYBODY, "/limits", None),
    "get_sweeps": (EVERYBODY, "/sweeps", None),
    "get_reservations": (EVERYBODY, "/reservations", None),
    "post_reservations_cancel": (DETAIL, "/reservations/cancel", {"agreements": ["a{job}"]}),
    "get_predictions": (EVERYBODY, "/predictions", None),
    "get_whoami": (EVERYBODY, "/whoami", None),
    "get_progress": (EVERYBODY, "/progress", None),
    "get_overview": (EVERYBODY, "/overview", None),
    "get_usage": (EVERYBODY, "/usage?since=2026-01-01T00:00:00Z", None),
    "post_sites_site_orders": (frozenset({"operator"}), "/sites/cern/orders", {"action": "ban"}),
    "put_shares_vo_group": (
        frozenset({"administrator", "operator"}),
        "/shares/atlas/higgs",
        {"background": False},
    ),
    "delete_shares_vo_group": (frozenset({"administrator", "operator"}), "/shares/atlas/higgs", None),
    "put_limits": (frozenset({"operator"}), "/limits", {"site": "cern", "most": 5}),
    "post_limits_drop": (
        frozenset({"operator"}),
        "/limits/drop",
        {"kind": "running", "key": ["cern", "", "any", ""]},
    ),
    "get_dead_letters": (frozenset({"operator"}), "/dead-letters", None),
    "get_dead_letters_letter": (frozenset({"operator"}), "/dead-letters/999999", None),
    "post_dead_letters_replay": (
        frozenset({"operator"}),
        "/dead-letters/replay",
        {"letters": [999999], "reason": "mended"},
    ),
    "post_dead_letters_drop": (
        frozenset({"operator"}),
        "/dead-letters/drop",
        {"letters": [999999], "reason": "a test"},
    ),
    "post_dead_letters_skip": (
        frozenset({"operator"}),
        "/dead-letters/skip",
        {"consumer": "c", "topic": "t", "partition": 0, "offset": 0, "reason": "slow"},
    ),
    "get_audit_trail": (EVERYBODY, "/audit-trail", None),
    "get_revocations": (frozenset({"operator"}), "/revocations", None),
    "post_revocations": (frozenset({"operator"}), "/revocations", {"kind": "token", "value": "{id}"}),
    "post_revocations_lift": (
        frozenset({"operator"}),
        "/revocations/lift",
        {"kind": "token", "value": "{id}"},
    ),
    "post_jobs": (USERS, "/jobs", {"executable": "echo"}),
    "post_sandboxes": (USERS, "/sandboxes", b"an archive"),
    "get_events": (USERS, "/events", None),
    "get_pilots_pilot_id_orders": (frozenset({"pilot"}), "/pilots/p1/orders", None),
    "post_pilots_pilot_id_messages": (
        frozenset({"pilot"}),
        "/pilots/p1/messages",
        {"messages": [{"type": "report", "report_id": "{id}", "pilot_id": "p1"}]},
    ),
    # What the answer holds is tested below.
    "get_jobs": (EVERYBODY, "/jobs?everything=true", None),
    "get_jobs_counts": (EVERYBODY, "/jobs/counts?everything=true", None),
    "post_orders": (USERS, "/orders", {"action": "hold", "selection": {"jobs": "{job}"}}),
    "post_queries": (READS, "/queries", {"type": "show-job", "query_id": "q", "job_id": "{job}"}),
    "post_commands": (
        USERS,
        "/commands",
        {"type": "control", "command_id": "{id}", "action": "hold", "selector": {"ids": ["{range}"]}},
    ),
}
APART = {"delete_pilot_orders_order": "/pilot-orders/{job}"}
"""What can be done once is tested below."""

PILOT = (
    "insert into pilot (pilot_id, site, ce, vo, dispatcher, slots) values ('p1', 'cern', 'ce1', 'atlas', 'local', 1)"
    " on conflict do nothing"
)
RESERVATION = (
    'insert into agreement (agreement_id, job_id, vo, owner, "group", site, ce, cpus, duration_seconds, flexible,'
    " expires_in_seconds, expires_at)"
    " values ('a' || $1::bigint, $1, 'atlas', 'alice', 'higgs', 'cern', 'ce1', 1, 60, false, 600, now() + interval '1 hour')"
)
PILOT_ORDER = (
    "insert into pilot_order (order_id, vo, owner_group, owner, group_wide, site, ce, wanted, expires_at)"
    " overriding system value values ($1, 'atlas', 'higgs', 'alice', false, '', '', 1, now() + interval '1 hour')"
)


@pytest.fixture(scope="module")
def tokens(door: Door) -> dict[str, str]:
    found = {}
    for name, (key, claims) in BEARERS.items():
        signing = load_key(door.place.root / "keys" / key)
        found[name] = mint(signing, msgspec.convert(_renamed(claims), Claims), 3_600, clock.timestamp())
    return found


def _renamed(claims: dict[str, Any]) -> dict[str, Any]:
    return {("sub" if name == "owner" else name): value for name, value in claims.items()}


@pytest_asyncio.fixture(loop_scope="session")
async def job(door: Door, tokens: dict[str, str]) -> AsyncIterator[int]:
    _, taken = await asked(door, tokens["owner"], "POST", "/jobs", {"executable": "echo"})
    job_id = taken["ids"][0][0]
    await executed(door.place, INSERT, job_id, "p1")
    await executed(door.place, PILOT)
    await executed(door.place, RESERVATION, job_id)
    yield job_id


def payloads_token(door: Door, job_id: int, epoch: int = 1, pilot_id: str = "p1") -> str:
    """Return the token that a job agent makes for the payload of an attempt."""
    keys = OrderKeys.from_file(door.place.root / "keys" / "orders.key")
    attempt_id = AttemptId(JobId(job_id), Epoch(epoch))
    return payload_token(PilotKey(pilot_id, keys.of_pilot(pilot_id)), attempt_id, 600.0, clock.timestamp())


async def asked(door: Door, token: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    sent: dict[str, Any] = {"json": body}
    if isinstance(body, bytes):
        sent, headers = {"data": body}, headers | {"Content-Type": "application/gzip"}
    async with door.session.request(method, f"{door.url}/api/v1{path}", headers=headers, **sent) as answer:
        if answer.content_type == "text/event-stream":
            return answer.status, None
        return answer.status, msgspec.json.decode(await answer.read())


def filled(body: Any, job_id: int, name: str) -> Any:
    """Put the job into a body of the table."""
    text = msgspec.json.encode(body).decode()
    text = text.replace('"{range}"', f"[{job_id},{job_id}]").replace('"job_id":"{job}"', f'"job_id":{job_id}')
    return msgspec.json.decode(text.replace("{job}", str(job_id)).replace("{id}", name))


PROTECTED = [each for each in OPERATIONS if not each.is_public]


@pytest.mark.parametrize("operation", PROTECTED, ids=name_of)
async def test_each_operation_is_open_to_whom_the_table_says(
    door: Door, tokens: dict[str, str], job: int, operation: Operation
) -> None:
    name = name_of(operation)
    if name in APART:
        pytest.skip("it is tested below")
    may, path, body = ALLOWED[name]
    seen = set()
    for bearer, token in (tokens | {"payload": payloads_token(door, job)}).items():
        sent = (
            body if body is None or isinstance(body, bytes) else filled(body, job, f"{name}-{bearer}-{job}")
        )
        status, answer = await asked(door, token, operation.method, path.format(job=job), sent)
        done = status == operation.status or (answer or {}).get("code") in NOTHING_TO_DO
        assert done or status in REFUSED, (bearer, answer)
        if done:
            seen.add(bearer)
    assert seen == may


@pytest.mark.parametrize("operation", PROTECTED, ids=name_of)
async def test_no_operation_is_open_without_a_valid_token(
    door: Door, tokens: dict[str, str], operation: Operation
) -> None:
    name = name_of(operation)
    path = APART.get(name) or ALLOWED[name][1]
    owners = tokens["owner"]
    head, claims, signature = owners.split(".")
    others = tokens["operator"].split(".")[1]
    for forged in ("", "a.b.c", f"{head}.{others}.{signature}", f"{head}.{claims}.", owners + "A"):
        status, problem = await asked(door, forged, operation.method, path.format(job=1))
        assert status == 401, (forged[:10], problem)


async def test_an_order_of_pilots_is_withdrawn_by_whom_the_table_says(
    door: Door, tokens: dict[str, str]
) -> None:
    done = set()
    for number, (bearer, token) in enumerate(tokens.items(), 1_000_000):
        await executed(door.place, PILOT_ORDER, number)
        status, answer = await asked(door, token, "DELETE", f"/pilot-orders/{number}")
        assert status in {200, 403, 404}, (bearer, answer)
        done |= {bearer} if status == 200 else set()
    assert done == DETAIL


async def test_the_audit_trail_holds_what_its_reader_may_see(door: Door, tokens: dict[str, str]) -> None:
    order = {"action": "kill", "selection": {"jobs": "999999999"}, "reason": "nothing"}
    assert (await asked(door, tokens["owner"], "POST", "/orders", order))[0] == 200
    for bearer, token in tokens.items():
        _, page = await asked(door, token, "GET", "/audit-trail?owner=alice&job=999999999")
        assert (bearer, bool(page["lines"])) == (bearer, bearer in DETAIL | {"other group"})


async def test_lists_and_counts_hold_what_their_reader_may_see(
    door: Door, tokens: dict[str, str], job: int
) -> None:
    for bearer, token in tokens.items():
        _, page = await asked(door, token, "GET", f"/jobs?jobs={job}")
        _, counts = await asked(door, token, "GET", f"/jobs/counts?jobs={job}")
        assert (bearer, bool(page.get("jobs"))) == (bearer, bearer in SEES)
        assert (bearer, bool(counts.get("counts"))) == (bearer, bearer in SEES)


async def test_orders_change_nothing_that_is_anothers(door: Door, tokens: dict[str, str], job: int) -> None:
    order = {"action": "kill", "selection": {"jobs": str(job)}}
    for bearer in sorted(EVERYBODY - DETAIL):
        status, done = await asked(door, tokens[bearer], "POST", "/orders", order)
        assert status in {200, 403, 404}
        assert (bearer, done.get("changed", 0)) == (bearer, 0)
    assert (await asked(door, tokens["administrator"], "POST", "/orders", order))[1]["changed"] == 1


async def test_a_payload_reads_its_own_job_alone(door: Door, tokens: dict[str, str], job: int) -> None:
    _, taken = await asked(door, tokens["owner"], "POST", "/jobs", {"executable": "echo"})
    another = taken["ids"][0][0]
    token = payloads_token(door, job)
    for path in ("", "/attempts", "/timeline", "/why"):
        assert (await asked(door, token, "GET", f"/jobs/{job}{path}"))[0] == 200
        assert (await asked(door, token, "GET", f"/jobs/{another}{path}"))[1]["code"] == "NOT_ALLOWED"
    for query in ({"type": "list-sites"}, {"type": "who-am-i"}, {"type": "peek-job", "job_id": job}):
        status, problem = await asked(door, token, "POST", "/queries", query | {"query_id": "q"})
        assert (status, problem["code"]) == (403, "NOT_ALLOWED")


async def test_a_payload_of_an_attempt_that_ended_or_of_another_pilot_reads_nothing(
    door: Door, job: int
) -> None:
    refused = {"of no attempt": (2, "p1"), "of another pilot": (1, "p2")}
    for epoch, pilot_id in refused.values():
        token = payloads_token(door, job, epoch, pilot_id)
        assert (await asked(door, token, "GET", f"/jobs/{job}"))[1]["code"] == "NOT_HELD"
    token = payloads_token(door, job)
    assert (await asked(door, token, "GET", f"/jobs/{job}"))[0] == 200
    await executed(door.place, "update lease set expires_at = now() where job_id = $1", job)
    assert (await asked(door, token, "GET", f"/jobs/{job}"))[1]["code"] == "NOT_HELD"
    await executed(door.place, "delete from lease where job_id = $1", job)
    assert (await asked(door, token, "GET", f"/jobs/{job}"))[1]["code"] == "NOT_HELD"


def test_the_table_is_of_all_operations() -> None:
    assert {name_of(each) for each in PROTECTED} == ALLOWED.keys() | APART.keys()
