"""`wms up`, `wms down`, `wms token`: a whole system on this machine, and the tokens for it."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from wms.cli.options import USUAL, CommonOptions, Duration, Many, Patience, Slots
from wms.cli.printing import note, show, show_json, show_table
from wms.cli.quantities import stamp
from wms.cli.session import INTERRUPTED, OK, SOME_FAILED, run_async

if TYPE_CHECKING:
    from wms.auth.token import Claims
    from wms.cli.payload_isolation import IsolationHere
    from wms.client.credential import UserCredential
    from wms.embedded.system import System


def up(
    *,
    kafka: str = "embedded",
    postgres: str = "embedded",
    slots: Slots = None,
    isolation: Literal["auto", "required", "none"] | None = None,
    log_level: Literal["debug", "info", "warning", "error"] = "info",
    common: CommonOptions = USUAL,
) -> int:
    """Run a whole system on this machine until Ctrl-C.

    The system has Postgres, a broker, every service, and a site with pilots. A process that dies is started again. Processes that a killed `wms up` has left are ended first. No process outlives this one.

    For example:
      wms up
      wms up --data ./here --slots 4
      wms up --kafka apache
      wms up --kafka broker:9092 --postgres postgresql://wms@db/wms

    Parameters
    ----------
    kafka
        embedded, which only you can reach; loopback, which every user of this machine can reach; apache (Apache Kafka 4, needs Java 17); or HOST:PORT of a running broker.
    postgres
        embedded, or the URL of a running server.
    slots
        The number of jobs that run at once; default: one for each core.
    isolation
        Whether a job sees only its own files and processes: auto (if this machine allows it), required, or none. Default: WMS_ISOLATION, else auto.
    log_level
        The log level of the services.
    """
    from wms.client.settings import data_directory
    from wms.embedded.system import System
    from wms.errors import Rejected
    from wms.files import Table
    from wms.telemetry import logs

    if common.profile:
        raise Rejected("BAD_OPTION", "a profile is of a system elsewhere", "name a directory with --data")
    logs.configure("wms up", "warning", as_json=False)
    directory = data_directory(common.data)
    pilots: Table = {"isolation": isolation} if isolation else {}
    system = System(
        directory,
        kafka=kafka,
        postgres=postgres,
        slots=slots,
        log_level=log_level,
        pilots=pilots,
    )
    return asyncio.run(_keep_up(system, directory, common))


async def _keep_up(system: "System", directory: Path, common: CommonOptions) -> int:
    from wms.cancellation import insistent_task
    from wms.cli.payload_isolation import isolation_here

    loop = asyncio.get_running_loop()
    loop.set_task_factory(insistent_task)
    starting = asyncio.ensure_future(system.start())
    # If it is told to end while it starts, it stops what it has started.
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, starting.cancel)
    note(f"starting a system in {directory} ...")
    isolation = asyncio.ensure_future(asyncio.to_thread(isolation_here, system.isolation))
    try:
        await starting
    except asyncio.CancelledError:
        return INTERRUPTED
    _tell_up(system, directory, common, await isolation)
    await system.until_told()
    note(f"ending ... running jobs have {system.stop_seconds:g} s to end; Ctrl-C kills them at once")
    await system.stop()
    note("ended")
    return OK


def _tell_up(system: "System", directory: Path, common: CommonOptions, isolation: "IsolationHere") -> None:
    state = system.state()
    if system.exposed:
        note(f"NOT SAFE ON A SHARED MACHINE: {system.exposed}")
    if common.json:
        show_json(
            {
                "data": str(directory),
                "pid": state.pid,
                "parts": state.children,
                "isolation": isolation.payloads or "namespaces",
                "pilots": isolation.pilots or "confined",
                "gateway": system.gateway_url,
            }
        )
    else:
        show(f"up: {', '.join(state.children)}")
        show(
            f"  data in {directory}; `wms submit -- echo hello` from another terminal; Ctrl-C or `wms down` ends it"
        )
        if system.gateway_url:
            show(
                f"  dashboard at {system.gateway_url}: `wms open` opens it; REST at {system.gateway_url}/api/v1/jobs"
            )
        warning = "WARNING: " if any(isolation) else ""
        show(f"  {warning}{isolation.text()}")
    sys.stdout.flush()


def down(
    *,
    within: Annotated[Patience, Parameter(show_default=lambda _: "1m")] = 60,
    now: bool = False,
    common: CommonOptions = USUAL,
) -> int:
    """End the system that `wms up` keeps up on this machine.

    Jobs and their history stay. Running jobs get SIGTERM and have 25 seconds to save what they need; they run again at the next `wms up`.

    For example:
      wms down
      wms down --now
      wms down --data ./here

    Parameters
    ----------
    within
        The longest wait for its end.
    now
        Kill running jobs at once.
    """
    from wms.client.settings import data_directory
    from wms.embedded.system import down as end

    directory = data_directory(common.data)
    ended = run_async(end(directory, within=float(within), now=now))
    if common.json:
        show_json({"data": str(directory), "ended": ended})
    else:
        show(f"the system in {directory} has ended" if ended else f"no system was up in {directory}")
    return OK if ended else SOME_FAILED


def token(
    what: Annotated[
        Literal["show", "create", "client"],
        Parameter(
            help="show the token in use, create one, or write the settings and a token for another user (client)"
        ),
    ] = "show",
    *,
    owner: str | None = None,
    group: str = "user",
    vo: str = "local",
    right: Many | None = None,
    site: Many | None = None,
    certificate_subject: str = "",
    voms: Many | None = None,
    lifetime: Annotated[Duration, Parameter(show_default=lambda _: "1d")] = 86_400,
    to: Path | None = None,
    common: CommonOptions = USUAL,
) -> int:
    """Show who you are to the system, or make a token.

    Tokens are made with the key of the local issuer, on the machine that has it.

    For example:
      wms token
      wms token create --owner alice --group physics --vo atlas --lifetime 12h --to alice.token
      wms token create --owner boss --right job_administrator
      wms token client --owner bob --group physics --to ./bob
      wms token create --owner nordic --site '*.nordic.org' --lifetime 30d --to nordic.token

    Parameters
    ----------
    owner
        The owner that the token names.
    group
        The owner's group.
    vo
        The owner's VO.
    right
        job_monitor, job_administrator or operator. May be repeated.
    site
        Make a token for an advertiser, which may send ads of this site, or of the sites that match a pattern. May be repeated.
    certificate_subject
        The subject of the owner's certificate, which rules of sites may admit: /DC=org/DC=example/CN=Jane Doe.
    voms
        A VOMS role of the owner, the primary one first: /lhcb/Role=production. May be repeated.
    lifetime
        The lifetime of the token: 12h, 7d.
    to
        The file for the token, readable by you alone; default: standard output. For `client`: the directory.
    """
    if what != "show":
        claims = _claims(owner, group, vo, right or [], site or [], certificate_subject, voms or [])
        made = _mint(common, claims, lifetime)
        return _give_directory(common, made, to) if what == "client" else _give_token(common, made, to)
    from wms.client.credential import TokenFile
    from wms.client.settings import read_settings
    from wms.runtime import clock

    settings = read_settings(common.data, token=common.token)
    credential = TokenFile(Path(settings.auth.token_file)).read(clock.timestamp())
    _show_token(credential, common)
    return OK


def _show_token(credential: "UserCredential", common: CommonOptions) -> None:
    from datetime import UTC, datetime

    claims = credential.claims
    expires = datetime.fromtimestamp(credential.expires_at, UTC)
    if common.json:
        show_json({"owner": credential.owner, "expires_at": expires, "claims": claims})
        return
    rows = [
        ("owner", credential.owner),
        *((name, claims[name]) for name in ("kind", "group", "vo") if claims.get(name)),
        ("rights", ", ".join(claims.get("rights", ())) or "-"),
        ("expires", stamp(expires)),
    ]
    show_table(("CLAIM", "VALUE"), rows)


def _claims(  # noqa: PLR0917 - a form filled in
    owner: str | None,
    group: str,
    vo: str,
    rights: list[str],
    sites: list[str],
    certificate_subject: str,
    voms: list[str],
) -> "Claims":
    from wms.auth.principal import Right
    from wms.auth.token import Claims
    from wms.errors import Rejected

    if owner is None:
        raise Rejected("BAD_OPTION", "a token needs an owner", "--owner NAME")
    if strange := sorted(set(rights) - set(Right)):
        raise Rejected("BAD_OPTION", f"there is no right {strange[0]}", f"one of {', '.join(Right)}")
    if sites:
        return Claims(kind="site", owner=owner, sites=frozenset(sites))
    return Claims(
        kind="user",
        owner=owner,
        group=group,
        vo=vo,
        rights=frozenset(rights),
        certificate_subject=certificate_subject,
        fqans=tuple(voms),
    )


def _mint(common: CommonOptions, claims: "Claims", lifetime: float) -> str:
    from wms.auth.keys import load_key
    from wms.auth.token import mint
    from wms.client.settings import read_settings
    from wms.runtime import clock

    keys = Path(read_settings(common.data).auth.jwks).parent
    key = "sites.pem" if claims.kind == "site" else "issuer.pem"
    return mint(load_key(keys / key), claims, lifetime, clock.timestamp())


def _give_directory(common: CommonOptions, made: str, to: Path | None) -> int:
    from wms.client.settings import read_settings, write_client_directory
    from wms.errors import Rejected

    if to is None:
        raise Rejected("BAD_OPTION", "a client's directory needs a name", "--to DIRECTORY")
    write_client_directory(to.absolute(), read_settings(common.data), made)
    show(str(to))
    note(f"whoever owns it uses the system with --data {to}, or WMS_DATA={to.absolute()}")
    return OK


def _give_token(common: CommonOptions, made: str, to: Path | None) -> int:
    from wms.files import write_secret

    if to is not None:
        write_secret(to, made + "\n")
        show(str(to))
    elif common.json:
        show_json({"token": made})
    else:
        show(made)
    return OK
