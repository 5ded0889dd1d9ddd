"""`wms limits`: how many jobs may run where, how fast they start, how many may wait, and how that is changed."""

from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from wms.cli.options import USUAL, Common
from wms.cli.printing import show, show_json, show_table
from wms.cli.session import OK, with_client
from wms.cli.table import ALWAYS, Column

if TYPE_CHECKING:
    from wms.client import Client
    from wms.messages.replies import LimitLine, LimitList
    from wms.taskqueue.limits import Key, Kind, Limit

LIMITS = (
    Column("KIND", ALWAYS),
    Column("SITE", ALWAYS),
    Column("CE", ALWAYS),
    Column("ATTRIBUTE", ALWAYS),
    Column("MOST>", 1),
    Column("PER SECOND>", 3),
    Column("FROM", 4, "cut", 10),
    Column("FULLEST>", 2, "cut", 12),
)


def limits(
    what: Annotated[
        Literal["list", "set", "lift", "reset"], Parameter(help="list, set, lift or reset")
    ] = "list",
    *,
    site: str = "",
    ce: str = "",
    attribute: str = "",
    max: int | None = None,  # noqa: A002 - the option's name
    rate: float | None = None,
    burst: int = 1,
    waiting: int | None = None,
    kind: Literal["running", "rate", "waiting"] = "running",
    common: Common = USUAL,
) -> int:
    """Show or set limits on running and waiting jobs.

    All limits that concern a job must let it pass. What is set holds within seconds, in all matchers and after every restart, until it
    is lifted, or reset to what the matchers' file says. A limit that is lowered stops no job that runs.

    For example:
      wms limits
      wms limits set --site CERN --attribute owner=alice --max 50
      wms limits set --site '*' --attribute 'owner=*' --max 500
      wms limits set --site CERN --ce ce01 --rate 2 --burst 10
      wms limits set --attribute 'owner=*' --waiting 100000
      wms limits lift --site CERN --attribute owner=alice
      wms limits reset --site CERN --ce ce01 --kind rate

    Parameters
    ----------
    site
        The site; * for each by itself.
    ce
        One computing element of it; * for each by itself. Without it the site as a whole.
    attribute
        Of which jobs: owner, owner_group, vo, job_type, setup or tag, and its value: owner=alice; owner=* for each by itself. Without it all.
    max
        So many at most have a pilot there.
    rate
        So many a second at most are given to pilots there.
    burst
        So many at once, after a pause, with --rate.
    waiting
        So many at most wait after a submission, wherever they may run.
    kind
        Which limit to lift or reset.
    """
    if what == "list":
        return with_client(common, lambda client: _list(client, common))
    key = _key(site, ce, attribute)
    limit = _limit(key, max, rate, burst, waiting) if what == "set" else None

    async def work(client: "Client") -> int:
        if limit is not None:
            said = await client.set_limit(limit)
        else:
            said = await client.drop_limit(kind, key, reset=what == "reset")
        show_json({"said": said}) if common.json else show(said)
        return OK

    return with_client(common, work)


def _key(site: str, ce: str, attribute: str) -> "Key":
    from typing import get_args

    from wms.errors import Rejected
    from wms.taskqueue.closed import Attribute
    from wms.taskqueue.limits import Key

    name, sign, value = attribute.partition("=")
    known = [each for each in get_args(Attribute) if each != "any"]
    if attribute and not (name in known and sign and value):
        raise Rejected(
            "BAD_ATTRIBUTE",
            f"--attribute: {attribute!r} names no attribute and value",
            f"write owner=alice, or owner=* for each; known are {', '.join(known)}",
        )
    return Key(site, ce, name or "any", value)  # type: ignore[arg-type] # one of `known`


def _limit(key: "Key", most: int | None, rate: float | None, burst: int, waiting: int | None) -> "Limit":
    from wms.errors import Rejected

    said: dict[Kind, tuple[int | None, float | None]] = {
        "running": (most, None),
        "rate": (burst if rate is not None else None, rate),
        "waiting": (waiting, None),
    }
    chosen = [(kind, most, rate) for kind, (most, rate) in said.items() if most is not None]
    if len(chosen) != 1:
        raise Rejected(
            "BAD_LIMIT", "a limit says one of --max, --rate, --waiting", "`wms limits --help` has examples"
        )
    return _checked(key, *chosen[0])


def _checked(key: "Key", kind: "Kind", most: int | None, rate: float | None) -> "Limit":
    import msgspec

    from wms.errors import Rejected
    from wms.taskqueue.limits import Limit

    try:
        limit = msgspec.convert({"kind": kind, **key._asdict(), "most": most, "per_second": rate}, Limit)
    except msgspec.ValidationError as error:
        raise Rejected("BAD_LIMIT", str(error)) from None
    if fault := limit.fault():
        raise Rejected("BAD_LIMIT", fault, "`wms limits --help` has examples")
    return limit


async def _list(client: "Client", common: Common) -> int:
    found = await client.limits()
    if common.json:
        show_json(found)
    else:
        show_table(LIMITS, [row(each, found) for each in found.limits], empty="there are no limits")
    return OK


def row(each: "LimitLine", found: "LimitList") -> tuple[object, ...]:
    """Return the row of a table of limits."""
    limit = each.limit
    return (
        limit.kind,
        limit.site or "-",
        limit.ce or "-",
        f"{limit.attribute}={limit.value}" if limit.value else "all jobs",
        "lifted" if each.lifted else f"{limit.most:,}",
        f"{limit.per_second:g}" if limit.per_second else "-",
        each.source + (f" by {each.said_by}" if each.said_by else ""),
        _fullest(limit, found) if limit.kind == "running" else "-",
    )


def _fullest(limit: "Limit", found: "LimitList") -> str:
    """Return the highest of what a limit counts."""
    from wms.taskqueue.limits import EACH

    counted = [
        (each.running, f"{each.site}{f'/{each.ce}' if each.ce else ''} {each.value}".strip())
        for each in found.counts
        if limit.site in (EACH, each.site)
        and (limit.ce == each.ce or (limit.ce == EACH and each.ce))
        and limit.attribute == each.attribute
        and limit.value in (EACH, each.value)
    ]
    running, where = max(counted, default=(0, ""))
    return f"{running:,} ({where})" if where else "0"
