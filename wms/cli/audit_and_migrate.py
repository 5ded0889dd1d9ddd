"""`wms audit`, `wms migrate`: commands for operators, which connect to the system's database."""

from typing import Annotated

from cyclopts import Parameter

from wms.cli.options import USUAL, CommonOptions, Flag, WithinBounds
from wms.cli.printing import show, show_json
from wms.cli.session import OK, SOME_FAILED, postgres_url, quiet, run_async

OffersOpen = Annotated[int | None, Parameter(validator=WithinBounds(0, 1_000_000_000))]


def audit(*, verbose: Flag = False, offers_open: OffersOpen = None, common: CommonOptions = USUAL) -> int:
    """Check the system's invariants in its database.

    The checks find lost jobs, jobs that two pilots had at a time, and histories that disagree with states. They share no code with the services. The exit code is 1 if a check finds something.

    For example:
      wms audit
      wms audit --verbose
      wms audit --json

    Parameters
    ----------
    verbose
        Also show the checks that found nothing wrong.
    offers_open
        The system's matching.offers_open; needed only if it is not 8 and no matcher runs.
    """
    from wms.audit import audit as audited
    from wms.db.database import GONE
    from wms.errors import Unavailable

    quiet()
    try:
        report = run_async(audited(postgres_url(common), offers_open=offers_open))
    except GONE as error:
        raise Unavailable(f"no connection to Postgres: {error}") from error
    if common.json:
        show_json({"ok": report.ok, "checks": report.checks, "notes": report.notes})
    else:
        show(report.text(brief=not verbose))
    return OK if report.ok else SOME_FAILED


def migrate(*, check: Flag = False, common: CommonOptions = USUAL) -> int:
    """Bring the database's schema up to this version.

    The command is safe at any time, even if several run at once.

    For example:
      wms migrate
      wms migrate --check

    Parameters
    ----------
    check
        Change nothing; fail if the schema is not that of this version.
    """
    from wms.db import migrate as migrations

    quiet()
    url = postgres_url(common)
    if check:
        run_async(migrations.check(url))
        applied: list[str] = []
    else:
        applied = run_async(migrations.migrate(url))
    if common.json:
        show_json({"applied": applied})
    else:
        show("\n".join(f"applied {name}" for name in applied) or "the schema is up to date")
    return OK
