"""`wms postgres-roles`: the SQL for a Postgres role for each service, with no more rights than it needs."""

import secrets
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from wms.cli.options import Flag
from wms.cli.printing import note, show, show_json
from wms.cli.session import OK
from wms.errors import Rejected

Names = Annotated[tuple[str, ...], Parameter(negative="")]


def postgres_roles(
    *,
    role: Annotated[Names, Parameter(help="a service, or tools; all of them if none is named")] = (),
    prefix: Annotated[str, Parameter(help="how the names of the roles begin")] = "wms_",
    apply: Annotated[
        Path | None,
        Parameter(help="make the roles now, with the [postgres] url of the schema's owner in this TOML file"),
    ] = None,
    passwords: Annotated[
        Path | None,
        Parameter(
            help="with --apply: a directory with the password of each role in a file; missing ones are made"
        ),
    ] = None,
    json: Annotated[Flag, Parameter(help="print the rights as JSON")] = False,
) -> int:
    """Print the SQL that gives each service and operators' tools a Postgres role of their own, or run it.

    A role may do what its service needs, owns nothing, and has no other rights: rights that it had before are revoked. Run it after each
    `wms migrate`; services say if a right is missing. The owner of the schema needs CREATEROLE, or roles that are there already.

    For example:
      wms postgres-roles | psql --single-transaction wms
      wms postgres-roles --apply owner.toml --passwords /etc/wms/passwords
      wms postgres-roles --role gateway --json
    """
    from wms.db import roles

    named = role or roles.ROLES
    text = roles.script(named, prefix=prefix)
    if passwords is not None and apply is None:
        raise Rejected("NOTHING_APPLIED", "--passwords is for --apply alone", "add --apply FILE")
    if apply is not None:
        import asyncio

        known = _passwords(passwords, named, prefix) if passwords else {}
        asyncio.run(roles.write_roles(_owner_url(apply), named, prefix=prefix, passwords=known))
        note(f"{len(named)} roles have their rights")
    if json:
        show_json({prefix + each: [right._asdict() for right in roles.rights_of(each)] for each in named})
    elif apply is None:
        show(text.rstrip("\n"))
    return OK


def _passwords(directory: Path, roles: tuple[str, ...], prefix: str) -> dict[str, str]:
    from wms.files import write_secret

    known = {}
    for each in roles:
        file = directory / f"{prefix}{each}.password"
        if not file.exists():
            write_secret(file, secrets.token_urlsafe(24))
        known[each] = file.read_text("ascii").strip()
    return known


def _owner_url(file: Path) -> str:
    import tomllib

    import msgspec

    from wms.runtime.config import PostgresSettings

    try:
        return msgspec.convert(tomllib.loads(file.read_text("utf-8"))["postgres"], PostgresSettings).url
    except (OSError, ValueError, KeyError) as error:
        raise Rejected(
            "BAD_ACCESS_FILE", f"{file}: {error!r}", "it needs a [postgres] table with url, as services have"
        ) from None
