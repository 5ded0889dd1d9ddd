"""What roles of Postgres may do is what their processes do: no right is missing, and none is too much."""

from collections.abc import Mapping

import asyncpg

from tests.db.needed_rights import LOCK, Need, Teller, needed
from tests.db.reached_blocks import reached_by
from wms.db.role_rights import OWN, TOOLS
from wms.db.roles import ROLES, rights_of
from wms.embedded.layout import SERVICES

IN_FUNCTIONS: Mapping[str, set[Need]] = {
    "reserve_job_ids": {("update", "job_id_seq")},
    "limits_known": {("select", "limit_generation")},
}
"""What these functions need of who calls them: no tree shows their bodies."""
FREE = {("execute", name) for name in ("reserve_job_ids", "limits_known", "processors_of", "partition_size")}
"""Everybody may call functions that run as their caller."""


def told(role: str) -> set[Need]:
    """Return what the table of roles tells of a role, as Postgres tells what a statement needs."""
    return {
        (f"{right.action}({column})" if column else right.action, right.name.partition("(")[0])
        for right in rights_of(role)
        for column in right.columns or ("",)
    }


def test_there_is_a_role_for_each_service() -> None:
    # The advertiser has no database.
    assert set(OWN) == set(SERVICES) - {"advertiser"}


async def test_roles_have_exactly_the_rights_that_their_processes_need(database: str) -> None:
    connection = await asyncpg.connect(database)
    teller = Teller(connection)
    await teller.open()
    wrong = {}
    for role in ROLES:
        wanted = await needed(teller, reached_by(role)) | {("select", "schema_migration")}
        wanted = {each for each in wanted if each not in FREE} | {
            need for each in wanted if each[0] == "execute" for need in IN_FUNCTIONS.get(each[1], ())
        }
        locked = {table for word, table in wanted if word == f"update({LOCK})"}
        changed = {table for word, table in told(role) if word.startswith("update(")}
        wanted = {each for each in wanted if each[0] != f"update({LOCK})"}
        # Who locks rows needs the right to change some column.
        extra = {
            each for each in told(role) - wanted if not (each[0].startswith("update(") and each[1] in locked)
        }
        lacking = (wanted - told(role)) | {("lock", table) for table in locked - changed}
        if role == TOOLS:
            # It audits whatever there is.
            extra = {each for each in extra if each[0] != "select"}
        wrong[role] = (sorted(lacking), sorted(extra))
    await connection.close()
    assert wrong == {role: ([], []) for role in ROLES}
