"""Roles of Postgres: what a process does it may do, and nothing else; tried on a real server, block by block."""

import os

import asyncpg
import pytest

from tests.conftest import execute
from tests.db.needed_rights import statement
from tests.db.reached_blocks import reached_by
from tests.db.role_server import RoleServer
from tests.db.test_sql import blocks
from wms.audit import audit
from wms.db.role_rights import TOOLS
from wms.db.roles import ROLES, check_rights, rights_of, script, write_roles
from wms.errors import Rejected


async def test_every_block_runs_under_each_role_that_reaches_it(role_server: RoleServer) -> None:
    refused, ran = {}, set()
    for role in ROLES:
        connection = await asyncpg.connect(role_server.url(role))
        for use in sorted(reached_by(role)):
            if use.noun:
                ran.add((use.noun, use.name))
                if refusal := await _refusal(connection, statement(use)):
                    refused[role, use] = refusal
        await connection.close()
    assert not refused
    # Migrations run under the role that owns the schema.
    of_services = {(noun, name) for noun, name, _ in blocks() if noun != "queue_keys"}
    assert of_services - ran == set(), "blocks that no process reaches"


async def _refusal(connection: asyncpg.Connection, text: str) -> str:
    """Run a block without values, undo it, and return why a right is missing; empty if none is."""
    undone = connection.transaction()
    await undone.start()
    try:
        prepared = await connection.prepare(text)
        await prepared.fetch(*[None] * len(prepared.get_parameters()))
    except asyncpg.InsufficientPrivilegeError as refusal:
        return str(refusal)
    except asyncpg.PostgresError:
        pass  # It was let in, and then some value was missing.
    finally:
        await undone.rollback()
    return ""


async def test_nobody_has_a_right_that_the_table_does_not_tell(role_server: RoleServer) -> None:
    connection = await asyncpg.connect(role_server.owner)
    tables = [
        row[0]
        for row in await connection.fetch(
            "select relname from pg_class where relkind in ('r', 'p', 'v') and relnamespace = 'public'::regnamespace"
        )
    ]
    for role in ROLES:
        held = await connection.fetch(
            "select t, a from unnest($2::text[]) t, unnest($3::text[]) a where has_any_column_privilege($1, t, a)"
            " union select t, a from unnest($2::text[]) t, unnest($4::text[]) a where has_table_privilege($1, t, a)",
            role_server.prefix + role,
            tables,
            ["select", "insert", "update"],
            ["delete", "truncate", "trigger"],
        )
        said = {(right.name, right.action) for right in rights_of(role) if right.kind == "table"}
        assert {tuple(row) for row in held} == said, role
        whole = await connection.fetch(
            "select t from unnest($2::text[]) t where has_table_privilege($1, t, 'update')",
            role_server.prefix + role,
            tables,
        )
        assert not whole, "only named columns may be changed"
    await connection.close()


REWRITES = (
    "update audit_record set owner = 'nobody'",
    "delete from audit_record",
    "truncate audit_record",
    "alter table audit_record disable trigger all",
    "drop trigger audit_record_kept on audit_record",
    "create or replace function refuse_audit_change() returns trigger language plpgsql as 'begin return old; end'",
    "drop table audit_record",
    "set session_replication_role = replica",
    "create table wms_own (n integer)",
    "create temporary table wms_own (n integer)",
    "copy audit_record to program 'cat'",
)
"""Ways to lose or change the audit trail, or to leave something of one's own."""


async def test_no_role_can_rewrite_the_audit_trail(role_server: RoleServer) -> None:
    for role in ROLES:
        connection = await asyncpg.connect(role_server.url(role))
        for attempt in REWRITES:
            if (role, attempt) == ("job_manager", "delete from audit_record"):
                continue  # It removes old entries; the next test has what it may not.
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(attempt)
        for other in {*ROLES} - {role}:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(f"set role {role_server.prefix}{other}")
        await connection.close()


async def test_the_job_manager_removes_no_young_entry_of_the_audit_trail(role_server: RoleServer) -> None:
    columns = "owner, owner_group, vo, token_id, command_id, action, subject, code, answer"
    connection = await asyncpg.connect(role_server.url("job_manager"))
    await connection.execute(
        f"insert into audit_record ({columns}) values ('a', '', '', '', '', '', '', '', '')"
    )
    with pytest.raises(asyncpg.InsufficientPrivilegeError, match="not rewritten"):
        await connection.execute("delete from audit_record")
    await connection.close()


@pytest.mark.parametrize("table", ["job", "lease", "description", "audit_record", "submission"])
async def test_the_gateway_sees_no_jobs(role_server: RoleServer, table: str) -> None:
    connection = await asyncpg.connect(role_server.url("gateway"))
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.fetch(f"select * from {table}")
    await connection.close()


async def test_tools_audit_the_whole_database(role_server: RoleServer) -> None:
    assert (await audit(role_server.url(TOOLS))).ok


async def test_what_a_role_had_besides_is_taken_away(role_server: RoleServer) -> None:
    gateway = f"{role_server.prefix}gateway"
    await execute(
        role_server.owner,
        f"grant all on job to {gateway}; grant update (epoch) on lease to {gateway}; grant pg_read_all_data to {gateway};"
        f" grant execute on function drop_partitions() to {gateway}; grant create on schema public to {gateway}",
    )
    await write_roles(role_server.owner, ["gateway"], prefix=role_server.prefix)
    connection = await asyncpg.connect(role_server.url("gateway"))
    for attempt in ("select from job", "select drop_partitions()", "create table mine (n integer)"):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(attempt)
    await connection.close()


async def test_a_service_whose_role_lacks_a_right_does_not_start(role_server: RoleServer) -> None:
    for role in ROLES:
        await check_rights(role_server.url(role), role)
    await execute(role_server.owner, f"revoke update (state) on job from {role_server.prefix}matcher")
    with pytest.raises(Rejected, match=r"(?s)may not update job\.state.*wms postgres-roles"):
        await check_rights(role_server.url("matcher"), "matcher")
    await check_rights(role_server.owner, "matcher")


async def test_a_schema_without_the_tables_is_refused_with_a_remedy(empty_database: str) -> None:
    with pytest.raises(Rejected, match="wms migrate"):
        await write_roles(empty_database, ["gateway"], prefix=f"t{os.getpid()}_none_")


async def test_who_does_not_own_the_schema_makes_no_roles(role_server: RoleServer) -> None:
    with pytest.raises(Rejected, match="owner"):
        await write_roles(role_server.url("gateway"), ["gateway"], prefix=role_server.prefix)


def test_the_script_has_no_password_and_no_foreign_name() -> None:
    text = script(["gateway"], passwords={"gateway": "do not tell"})
    assert "do not tell" not in text
    assert "SCRAM-SHA-256$4096:" in text
    for prefix in ("", "a; drop table job; --", "A", "1"):
        with pytest.raises(Rejected, match="begins no name"):
            script(prefix=prefix)
    with pytest.raises(Rejected, match="no role is named 'other'"):
        script(["other"])
