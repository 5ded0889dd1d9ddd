"""`wms sites --discover`: the computing elements that index servers list, and the servers that did not answer."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Group, Parameter

from wms.cli.options import CommonOptions
from wms.cli.printing import note, show, show_json, show_table
from wms.cli.quantities import span
from wms.cli.session import OK, UNAVAILABLE, quiet, run_async
from wms.errors import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wms.bus.ad_topic import AdTopic
    from wms.discovery.address import Address
    from wms.discovery.admission import Asker
    from wms.discovery.search import Found, Visit
    from wms.discovery.server_answers import FoundElement
    from wms.glue.quantity import Quantity

DISCOVERY = Group("Discovery", sort_key=20)
ELEMENTS = ("SITE", "CE", "STATE", "SLOTS>", "FREE>", "WAITING>", "MAX WALL>", "LETS IN", "DOOR")
SHOWN = 200
"""How many characters are shown of a text from an untrusted server."""
SERVERS = ("OUTCOME", "KIND", "ELEMENTS>", "SERVER", "WHY")


@Parameter(name="*", group=DISCOVERY)
@dataclass(frozen=True, kw_only=True)
class DiscoveryOptions:
    """The options of a discovery: the elements to search for, and the index servers to query."""

    discover: Annotated[list[str], Parameter(negative=(), show_default=False)] = field(default_factory=list)
    """A URL or a file: ask this index server, and the servers that it lists, instead of the system. May be repeated."""

    for_vo: str = ""
    """Only elements that admit this VO."""

    for_group: str = ""
    """Only elements that admit this group or role of the VO."""

    proxy: Path | None = None
    """An X.509 proxy to use with ARC elements."""

    authorities: Path | None = None
    """A file or directory with the CA certificates to trust; default: those that this machine trusts."""

    jwks: Path | None = None
    """A file with the public keys of trusted token issuers, to verify ads from kafka://BROKER/wms.resource.ads."""

    glue: Literal["xml", "classad"] | None = None
    """Print the elements in GLUE: as a document of GLUE 2.0, or each as a ClassAd in gLite's form, one a line."""


def discover(sought: DiscoveryOptions, common: CommonOptions) -> int:
    """Query the index servers, show the computing elements that they list, and return the exit code: not 0 if no server answered."""
    quiet()
    found = run_async(_find(sought, float(common.timeout)))
    asker = _asker(sought)
    elements = [each for each in found.elements if _is_let_in(each, asker)]
    if sought.glue:
        _show_glue(elements, sought.glue)
        _note(found)
    elif common.json:
        show_json({"elements": [_record(each) for each in elements], "servers": found.visits})
    else:
        show_table(ELEMENTS, [_row(each) for each in elements], empty="no computing element was found")
        show()
        show_table(SERVERS, [_server(each) for each in found.visits])
        _note(found)
    return UNAVAILABLE if len(found.unheard) == len(found.visits) else OK


def _show_glue(elements: "Sequence[FoundElement]", form: Literal["xml", "classad"]) -> None:
    from wms.glue.ad import GlueAd
    from wms.glue.classad import LIFETIME_SECONDS, write_classad
    from wms.glue.glue2_xml import write_xml
    from wms.glue.versions import services
    from wms.runtime import clock

    if form == "xml":
        show(write_xml(services(each.glue for each in elements)).decode())
        return
    now = clock.now()
    for each in elements:
        show(write_classad(GlueAd(element=each.glue, updated_at=now, lifetime_seconds=LIFETIME_SECONDS)))


async def _find(sought: DiscoveryOptions, seconds: float) -> "Found":
    from wms.discovery.discovery import Discovery, DiscoveryLimits
    from wms.discovery.file import FileSource
    from wms.discovery.http import Web
    from wms.discovery.port import Source
    from wms.web import WebIdentity

    web = Web(WebIdentity(proxy_file=str(sought.proxy or ""), authorities=str(sought.authorities or "")))
    topic = _topic(sought)
    sources: dict[str, Source] = {"https": web, "http": web, "file": FileSource()}
    if topic is not None:
        sources["kafka"] = topic
    try:
        async with Discovery(
            sources, pace=DiscoveryLimits(server_seconds=seconds, whole_seconds=seconds)
        ) as discovery:
            return await discovery.find([_root(each) for each in sought.discover])
    finally:
        if topic is not None:
            await topic.close()


def _topic(sought: DiscoveryOptions) -> "AdTopic | None":
    if sought.jwks is None:
        return None
    from wms.auth.token import Verifier
    from wms.bus.ad_topic import AdTopic
    from wms.bus.kafka import KafkaSettings
    from wms.runtime import clock

    return AdTopic(KafkaSettings(), Verifier.from_file(sought.jwks), clock.now)


def _root(text: str) -> "Address":
    from wms.discovery.address import address

    return address(text if ":" in text else Path(text).absolute().as_uri(), "index")


def _asker(sought: DiscoveryOptions) -> "list[Asker]":
    from wms.discovery.admission import Asker

    wanted = Asker(vo=sought.for_vo, group=sought.for_group)
    return [wanted] if wanted != Asker() else []


def _is_let_in(element: "FoundElement", askers: "list[Asker]") -> bool:
    from wms.discovery.admission import admits

    return admits(element, askers)


def _record(element: "FoundElement") -> dict[str, object]:
    from wms.glue.ad import attributes

    said = attributes(element.glue)
    return {"site": element.site, "ce": element.name, "attributes": said, "offer": element.offer}


def _row(element: "FoundElement") -> tuple[object, ...]:
    glue = element.glue
    return (
        element.site,
        element.name,
        shown(glue.status, SHOWN) or "-",
        _number(glue.total_cpus),
        _number(glue.free_job_slots),
        _number(glue.waiting_jobs),
        _time(glue.max_wall_seconds),
        shown(",".join(glue.access_rules), SHOWN) or "-",
        shown(glue.contact or glue.host_name, SHOWN) or "-",
    )


def _number(quantity: "Quantity") -> str:
    from wms.glue.quantity import known

    number = known(quantity)
    return "-" if number is None else f"{number:,}"


def _time(quantity: "Quantity") -> str:
    from wms.glue.quantity import known

    seconds = known(quantity)
    return "-" if seconds is None else span(seconds)


def _server(visit: "Visit") -> tuple[object, ...]:
    return (visit.outcome, visit.kind, visit.elements, visit.url, visit.why)


def _note(found: "Found") -> None:
    if found.unheard:
        note(
            f"{len(found.unheard)} of {len(found.visits)} servers did not answer: the list may be incomplete"
        )
