"""The Postgres roles: one for each service and one for operators' tools, with exactly the rights that `role_rights.py` lists.

A role owns nothing. So no service can change the schema, remove a trigger, or rewrite the audit trail. SQL has no parameters for the names
of roles and tables in grants. So the statements are composed here as text, from fixed names alone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import asyncpg

from wms.db.database import Connection, connect_once
from wms.db.role_rights import COMMON, EXECUTED, OF_TOOLS, OWN, SEQUENCES, SERVER_ROLES, TOOLS
from wms.db.scram import verifier
from wms.errors import Rejected

ROLES: Final = (*OWN, TOOLS)
"""The names of all roles, without the prefix: the services, and the tools of operators."""
PREFIX: Final = "wms_"
"""The default prefix of the names of roles in Postgres, as in `wms_matcher`."""
_PREFIX: Final = re.compile(r"[a-z][a-z0-9_]{0,30}")
_UPDATE: Final = re.compile(r"update\((.*?)\)")


class DatabaseRight(NamedTuple):
    """One right of a role: an action on a table, a sequence or a function."""

    action: str
    """`select`, `insert`, `update` or `delete` of a table; `select` or `update` of a sequence; `execute` of a function."""
    kind: str
    """`table`, `sequence` or `function`."""
    name: str
    """The name of the table, sequence or function; that of a function is followed by the types of its parameters."""
    columns: tuple[str, ...] = ()
    """The columns that may be updated. Empty for other actions, which apply to all columns."""

    def grant(self, role: str) -> str:
        """Return the statement that gives this right to a role."""
        columns = f" ({', '.join(self.columns)})" if self.columns else ""
        return f"grant {self.action}{columns} on {self.kind} {self.name} to {role};"


def rights_of(role: str) -> list[DatabaseRight]:
    """Return all rights of a role, one of `ROLES`."""
    return [
        *(right for table, told in sorted(tables_of(role).items()) for right in _of_table(table, told)),
        *(
            DatabaseRight(word, "sequence", name)
            for name, told in SEQUENCES.get(role, {}).items()
            for word in told.split()
        ),
        *(DatabaseRight("execute", "function", each) for each in EXECUTED.get(role, ())),
    ]


def tables_of(role: str) -> dict[str, str]:
    """Return the rights of a role, one of `ROLES`, on each table, in the notation of `role_rights.py`."""
    if role == TOOLS:
        return dict(OF_TOOLS)
    own = OWN[role]
    return {table: " ".join(filter(None, (COMMON.get(table), own.get(table)))) for table in {*COMMON, *own}}


def _of_table(table: str, told: str) -> Iterator[DatabaseRight]:
    for word in sorted(set(_UPDATE.sub("", told).split())):
        yield DatabaseRight(word, "table", table)
    columns = sorted({name for listed in _UPDATE.findall(told) for name in listed.split()})
    if columns:
        yield DatabaseRight("update", "table", table, tuple(columns))


def script(
    roles: Sequence[str] = ROLES, *, prefix: str = PREFIX, passwords: Mapping[str, str] | None = None
) -> str:
    """Return SQL that creates the missing ones of these roles and gives each exactly its rights. The SQL may be run repeatedly.

    `passwords` has the new password of some roles; the SQL contains only their SCRAM verifiers. Roles without one keep their password.
    Raise Rejected for an unknown role, or unless `prefix` is a lower-case letter and up to 30 lower-case letters, digits or _.
    """
    if not _PREFIX.fullmatch(prefix):
        raise Rejected("BAD_PREFIX", f"{prefix!r} begins no name of a role", "use letters, digits and _")
    if unknown := sorted(set(roles) - set(ROLES)):
        raise Rejected("UNKNOWN_ROLE", f"no role is named {unknown[0]!r}", f"there are {', '.join(ROLES)}")
    lines = ["begin;"]
    for each in roles:
        lines += _role(prefix + each, each, (passwords or {}).get(each))
    return "\n".join([*lines, *_CLOSED, "commit;", ""])


_CLOSED: Final = (
    "do $$ begin",
    "    execute format('revoke create on schema %I from public', current_schema());",
    "    execute format('revoke temporary on database %I from public', current_database());",
    "end $$;",
)


def _role(name: str, role: str, password: str | None) -> list[str]:
    return [
        "",
        f"-- {name}",
        "do $$ begin",
        f"    if not exists (select from pg_roles where rolname = '{name}' and rolcanlogin) then",
        f"        if exists (select from pg_roles where rolname = '{name}') then alter role {name} login;",
        f"        else create role {name} login; end if;",
        "    end if;",
        "end $$;",
        *([f"alter role {name} password '{verifier(password)}';"] if password else []),
        *_nothing(name, SERVER_ROLES.get(role, ())),
        *(f"grant {each} to {name};" for each in SERVER_ROLES.get(role, ())),
        *(right.grant(name) for right in rights_of(role)),
    ]


def _nothing(name: str, kept: Sequence[str]) -> list[str]:
    """Return the statements that take all rights from a role. It stays a member of the Postgres roles in `kept`."""
    listed = ", ".join(f"'{each}'" for each in kept) or "''"
    return [
        "do $$ declare held text; begin",
        "    for held in select r.rolname from pg_auth_members m join pg_roles r on r.oid = m.roleid",
        f"        where m.member = '{name}'::regrole and r.rolname not in ({listed})",
        f"    loop execute format('revoke %I from {name}', held); end loop;",
        f"    execute format('revoke all on schema %I from {name}', current_schema());",
        f"    execute format('grant usage on schema %I to {name}', current_schema());",
        "    for held in select unnest(array['tables', 'sequences', 'functions'])",
        f"    loop execute format('revoke all on all %s in schema %I from {name}', held, current_schema()); end loop;",
        "end $$;",
    ]


async def write_roles(
    url: str,
    roles: Sequence[str] = ROLES,
    *,
    prefix: str = PREFIX,
    passwords: Mapping[str, str] | None = None,
) -> None:
    """Create these roles, or correct their rights, in the database at `url`. `prefix` begins their names, `passwords` are set if given.

    The user in `url` must own the schema and be allowed to create roles. The schema must be that of this version. Raise Unavailable if the
    server does not answer, Rejected if it refuses.
    """
    text = script(roles, prefix=prefix, passwords=passwords)
    connection = await connect_once(url)
    try:
        await connection.execute(text)
    except asyncpg.PostgresError as error:
        raise Rejected(
            "ROLES_REFUSED",
            f"the server refuses a statement: {error}",
            "run `wms migrate`, and give the URL of the schema's owner, who needs CREATEROLE",
        ) from error
    finally:
        await connection.close()


async def check_rights(url: str, role: str) -> None:
    """Raise Rejected, with a remedy, if the user in `url` lacks a right of `role`. Raise Unavailable if the database cannot be reached.

    A role that is not in `ROLES` is not checked.
    """
    if role not in ROLES:  # a service of somebody else, or of a test
        return
    connection = await connect_once(url)
    try:
        lacking = await _lacking(connection, rights_of(role))
    finally:
        await connection.close()
    if lacking:
        raise Rejected(
            "RIGHTS_MISSING",
            f"this role may not {lacking[0]}" + (f", nor do {len(lacking) - 1} more" if lacking[1:] else ""),
            "run `wms postgres-roles` for the database, as after every upgrade",
        )


_LACKING: Final = """
    select action || ' ' || name || coalesce('.' || part, '') from unnest($1::text[], $2::text[], $3::text[], $4::text[])
        as wanted (action, kind, name, part)
    where not case kind
        when 'function' then has_function_privilege(name, action)
        when 'sequence' then has_sequence_privilege(name, action)
        else case when part is null then has_table_privilege(name, action) else has_column_privilege(name, part, action) end
    end
"""


async def _lacking(connection: Connection, rights: Sequence[DatabaseRight]) -> list[str]:
    wanted = [
        (right.action, right.kind, right.name, column)
        for right in rights
        for column in right.columns or (None,)
    ]
    rows = await connection.fetch(_LACKING, *map(list, zip(*wanted, strict=True)))
    return [row[0] for row in rows]
