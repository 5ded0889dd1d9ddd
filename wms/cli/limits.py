"""`wms limits`: lists and changes limits on running jobs, on the rate of starts, and on waiting jobs."""

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from wms.cli.options import USUAL, CommonOptions, WithinBounds
from wms.cli.printing import note, show, show_json, show_table
from wms.cli.session import OK, with_client
from wms.cli.table import ALWAYS, TableColumn

if TYPE_CHECKING:
    from wms.client import Client
    from wms.matching.limits import Kind, LimitKey, LimitRule
    from wms.messages.limits import Limit as ListedLimit
    from wms.messages.replies import LimitLine, LimitList

LIMITS = (
    TableColumn("KIND", ALWAYS),
    TableColumn("SITE", ALWAYS),
    TableColumn("CE", ALWAYS),
    TableColumn("ATTRIBUTE", ALWAYS),
    TableColumn("MOST>", 1),
    TableColumn("PER SECOND>", 3),
    TableColumn("FROM", 4, "cut", 10),
    TableColumn("FULLEST>", 2, "cut", 12),
)


limits = App(
    name="limits",
    help="""Show or set limits on running and waiting jobs.

A job starts only if all limits that count it allow it. A limit that is set holds within seconds in all matchers, also after restarts, until it is lifted or reset. A lowered limit stops no running job.

For example:
  wms limits
  wms limits set --site CERN --attribute owner=alice --max 50
  wms limits lift --site CERN --attribute owner=alice
  wms limits reset --site CERN --ce ce01

Each of list, set, lift and reset has --help with more examples.""",
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CountedJobsOptions:
    """The options that say which jobs a limit counts: by place and by an attribute of the jobs."""

    site: str = ""
    """Count the jobs at this site; with *, each site has the limit by itself."""

    ce: str = ""
    """Count the jobs at this computing element of the site; with *, each element has the limit by itself. Default: the site as a whole."""

    attribute: str = ""
    """Count the jobs with this value of owner, owner_group, vo, job_type, setup or tag: owner=alice; with owner=*, each owner has the limit by itself. Default: all jobs."""


ALL_JOBS = CountedJobsOptions()
OneKind = Annotated[
    Literal["running", "rate", "waiting"] | None,
    Parameter(help="The kind of the limit, if there are several."),
]


@limits.default
@limits.command(name="list")
def show_limits(*, common: CommonOptions = USUAL) -> int:
    """List the limits in force, and how much of each is used.

    For example:
      wms limits list
      wms limits list --json
    """
    return with_client(common, lambda client: _list(client, common))


@limits.command(name="set")
def set_limit(
    *,
    concerned: CountedJobsOptions = ALL_JOBS,
    max: Annotated[int | None, Parameter(validator=WithinBounds(0, 1_000_000_000))] = None,  # noqa: A002 - the option's name
    rate: Annotated[float | None, Parameter(validator=WithinBounds(0.001, 1e9, "0.001 to 1e9"))] = None,
    burst: Annotated[int, Parameter(validator=WithinBounds(1, 1_000_000_000))] = 1,
    waiting: Annotated[int | None, Parameter(validator=WithinBounds(0, 1_000_000_000))] = None,
    common: CommonOptions = USUAL,
) -> int:
    """Set a limit. It holds from now on and overrides the matchers' configuration.

    For example:
      wms limits set --site CERN --attribute owner=alice --max 50
      wms limits set --site '*' --attribute 'owner=*' --max 500
      wms limits set --site CERN --ce ce01 --rate 2 --burst 10
      wms limits set --attribute 'owner=*' --waiting 100000

    Parameters
    ----------
    max
        How many of these jobs may run at a time.
    rate
        How many of these jobs may start in a second.
    burst
        How many of these jobs may start at once after a pause, with --rate.
    waiting
        How many of these jobs may wait, wherever they may run. A submission that would exceed this is refused.
    """
    limit = _limit(_key(concerned), max, rate, burst, waiting)

    async def work(client: "Client") -> int:
        for line in await _unknown_places(client, limit.site, limit.ce):
            note(line)
        return _tell(await client.set_limit(limit), common)

    return with_client(common, work)


@limits.command(name="lift")
def lift_limit(
    *, concerned: CountedJobsOptions = ALL_JOBS, kind: OneKind = None, common: CommonOptions = USUAL
) -> int:
    """Lift a limit. No limit of its kind holds for these jobs from now on, not even one of the matchers' configuration.

    For example:
      wms limits lift --site CERN --attribute owner=alice
      wms limits lift --site CERN --ce ce01 --kind rate
    """
    return _drop(concerned, kind, common, reset=False)


@limits.command(name="reset")
def reset_limit(
    *, concerned: CountedJobsOptions = ALL_JOBS, kind: OneKind = None, common: CommonOptions = USUAL
) -> int:
    """Remove what was set or lifted, so that the matchers' configuration holds again for these jobs.

    For example:
      wms limits reset --site CERN --ce ce01
      wms limits reset --attribute 'owner=*'
    """
    return _drop(concerned, kind, common, reset=True)


def _drop(concerned: CountedJobsOptions, kind: "Kind | None", common: CommonOptions, *, reset: bool) -> int:
    key = _key(concerned)

    async def work(client: "Client") -> int:
        which = kind or only_kind(await client.limits(), key, reset=reset)
        return _tell(await client.drop_limit(which, key, reset=reset), common)

    return with_client(common, work)


def only_kind(found: "LimitList", key: "LimitKey", *, reset: bool) -> "Kind":
    """Return the kind of the limit with this key, if there is just one that can be lifted, or, if `reset` is True, reset.

    Raise Rejected if there are several such limits, or none.
    """
    from wms.errors import Rejected
    from wms.matching.limits import LimitKey

    there = [
        each.limit.kind
        for each in found.limits
        if LimitKey(*each.limit.key) == key and (each.source == "set" if reset else not each.lifted)
    ]
    if len(there) == 1:
        return there[0]
    if there:
        raise Rejected(
            "BAD_OPTION",
            f"{key.text()}: there are {len(there)} limits",
            f"--kind {' or '.join(sorted(there))}",
        )
    what = "set or lifted" if reset else "there"
    raise Rejected("NOT_SET", f"{key.text()}: no limit is {what}", "`wms limits` shows what holds")


async def _unknown_places(client: "Client", site: str, ce: str) -> list[str]:
    """Return a warning if the site or computing element of a limit is not advertised now; else an empty list."""
    from wms.matching.limits import EACH

    known = await client.sites()
    names = {each.site for each in known}
    elements = {each.ce for each in known if each.site == site}
    if site and site != EACH and site not in names:
        return [_odd("site", site, names)]
    if ce and EACH not in (ce, site) and ce not in elements:
        return [_odd(f"computing element of {site}", ce, elements)]
    return []


def _odd(what: str, name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known)[:10]) or 'none'}"
    return f"warning: no {what} called {name} advertises itself now; {hint}"


def _tell(said: str, common: CommonOptions) -> int:
    show_json({"said": said}) if common.json else show(said)
    return OK


def _key(concerned: CountedJobsOptions) -> "LimitKey":
    from typing import get_args

    from wms.errors import Rejected
    from wms.matching.closed_pairs import Attribute
    from wms.matching.limits import LimitKey

    attribute = concerned.attribute
    name, sign, value = attribute.partition("=")
    known = [each for each in get_args(Attribute) if each != "any"]
    if attribute and not (name in known and sign and value):
        raise Rejected(
            "BAD_ATTRIBUTE",
            f"--attribute: {attribute!r} names no attribute and value",
            f"write owner=alice, or owner=* for each; known are {', '.join(known)}",
        )
    return LimitKey(concerned.site, concerned.ce, name or "any", value)  # type: ignore[arg-type] # one of `known`


def _limit(
    key: "LimitKey", most: int | None, rate: float | None, burst: int, waiting: int | None
) -> "LimitRule":
    from wms.errors import Rejected

    said: dict[Kind, tuple[int | None, float | None]] = {
        "running": (most, None),
        "rate": (burst if rate is not None else None, rate),
        "waiting": (waiting, None),
    }
    chosen = [(kind, most, rate) for kind, (most, rate) in said.items() if most is not None]
    if len(chosen) != 1:
        raise Rejected(
            "BAD_LIMIT",
            "a limit says one of --max, --rate, --waiting",
            "`wms limits set --help` has examples",
        )
    return _checked(key, *chosen[0])


def _checked(key: "LimitKey", kind: "Kind", most: int | None, rate: float | None) -> "LimitRule":
    import msgspec

    from wms.errors import Rejected
    from wms.matching.limits import LimitRule

    try:
        limit = msgspec.convert({"kind": kind, **key._asdict(), "most": most, "per_second": rate}, LimitRule)
    except msgspec.ValidationError as error:
        raise Rejected("BAD_LIMIT", str(error)) from None
    if fault := limit.fault():
        raise Rejected("BAD_LIMIT", fault, "`wms limits set --help` has examples")
    return limit


async def _list(client: "Client", common: CommonOptions) -> int:
    found = await client.limits()
    if common.json:
        show_json(found)
    else:
        show_table(LIMITS, [row(each, found) for each in found.limits], empty="there are no limits")
    return OK


def row(each: "LimitLine", found: "LimitList") -> tuple[object, ...]:
    """Return the table row that shows a limit. `found` has all limits, and the jobs counted under them."""
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


def _fullest(limit: "ListedLimit", found: "LimitList") -> str:
    """Return the highest count of running jobs under a limit as text, with its site, element and attribute value.

    A limit with `*` has several counts, one for each site, element or value.
    """
    from wms.matching.limits import EACH

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
