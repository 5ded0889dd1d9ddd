"""The ad of a computing element as in gLite's matchmaker: GLUE 1.x as one flat record of attributes with values.

Values are plain (texts, numbers, booleans, lists, records), so that messages can contain them unchanged. Expressions of such an ad
are kept apart, as text. Unknown values are left out, except for attributes that users' expressions read (`matchable`): these have the
numbers that gLite published.

Names are those of the ad in the EGEE project's slides of 2005, and of GLUE 1.3. Limits of time are in minutes, as these attributes
have always been.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from msgspec import Struct

from wms.glue import glue1
from wms.glue.attribute import Attribute, ValueKind, fields, placeholders, required, value
from wms.glue.glue1 import GlueComputingElement, GlueHosts, StorageBinding
from wms.glue.quantity import NOT_KNOWN, NotANumber

Attributes: TypeAlias = dict[str, Any]
"""Values of an ad (`Value`) by the names of their attributes."""

EXPRESSIONS = {
    "AuthorizationCheck": "member(other.CertificateSubject, GlueCEAccessControlBaseRule)"
    ' || member(strcat("VO:", other.VirtualOrganisation), GlueCEAccessControlBaseRule)'
    ' || isString(other.VOMS_FQAN) && member(strcat("VOMS:", other.VOMS_FQAN), GlueCEAccessControlBaseRule)',
    "CloseOutputSECheck": "isUndefined(other.OutputSE) || member(other.OutputSE, GlueCESEBindGroupSEUniqueID)",
}
"""The expressions of such an ad by attribute: whether the user is authorized, and whether the job's output storage is close."""

CONTACTS = "ContactStrings"
"""The attribute, not in GLUE, with all contact strings of a queue that has several. The one in use is GlueCEInfoContactString."""

_OF_QUEUES = ("GlueCEPolicy", "GlueCEState")
_OF_KINDS = {ValueKind.LIMIT: NOT_KNOWN, ValueKind.MINUTES: NOT_KNOWN, ValueKind.WAIT: 2_146_660_842}
TEMPLATE = {"GlueCEStateWaitingJobs": 444_444}
"""Default numbers in the templates with which sites configured gLite, by attribute.

They stand for a number that was never configured. Counts whose default was 0 are left out, since 0 may be a true count.
"""

HEPSPEC06 = "GlueHostBenchmarkHEPSPEC06"
"""The attribute with the HEP-SPEC06 benchmark of a core.

GLUE 1.x has no such attribute; sites publish the benchmark within another text.
"""


class GlueAd(Struct, frozen=True, kw_only=True):
    """A computing element with the time of its ad, and the ad's lifetime in seconds."""

    element: GlueComputingElement
    updated_at: datetime
    lifetime_seconds: int


def attributes(element: GlueComputingElement) -> Attributes:
    """Return all known values of a computing element by the names of their attributes."""
    said = {
        **_values(glue1.ELEMENT, element),
        **_values(glue1.HOSTS, element.hosts),
        **_storage(element.storage),
        "CEid": element.id,
        "QueueName": element.name,
        "LRMSType": element.lrms_type,
        "GlueSiteUniqueID": element.site,
        "GlueClusterUniqueID": element.hosting_cluster,
        HEPSPEC06: element.hosts.hepspec06,
        CONTACTS: list(element.contacts) if len(element.contacts) > 1 else [],
    }
    return {name: each for name, each in said.items() if each not in (None, "", [])}


def element_of(said: Mapping[str, Any]) -> GlueComputingElement:
    """Return the computing element that attributes describe, the inverse of `attributes`.

    Raise Rejected if the attributes have no identifier.
    """
    texts = {name: _texts(each) for name, each in said.items()}
    identifier = texts.get("GlueCEUniqueID") or texts.get("CEid")
    if not identifier:
        required(texts, "GlueCEUniqueID", "the ad")
    hepspec = said.get(HEPSPEC06)
    whole = {**texts, "GlueCEUniqueID": identifier or []}
    cluster = _first(texts, "GlueCEHostingCluster") or _first(texts, "GlueClusterUniqueID")
    return GlueComputingElement(
        **{**fields(glue1.ELEMENT, whole), "hosting_cluster": cluster},
        site=_first(texts, "GlueSiteUniqueID"),
        contacts=tuple(texts.get(CONTACTS, ())),
        hosts=GlueHosts(
            **fields(glue1.HOSTS, texts),
            hepspec06=float(hepspec) if isinstance(hepspec, int | float) else None,
        ),
        storage=_bindings(said),
        published=placeholders(glue1.ELEMENT, whole) + placeholders(glue1.HOSTS, texts),
    )


def matchable(element: GlueComputingElement) -> Attributes:
    """Return the attributes that users' expressions read.

    Missing lists that expressions search are empty; missing numbers have gLite's values. gLite's matchmaker had the numbers that
    sites published: 999999999 for an unknown limit, or 0 for one that was not set. Users' expressions rely on that
    (`other.GlueCEPolicyMaxCPUTime >= 720 || other.GlueCEPolicyMaxCPUTime == 0`). An unpublished number is replaced by the default of
    gLite's templates, if that cannot be mistaken for a true number.
    """
    searched: Attributes = {"GlueCEAccessControlBaseRule": [], "GlueCESEBindGroupSEUniqueID": []}
    return searched | _templates(element) | attributes(element) | as_published(element)


def as_published(element: GlueComputingElement) -> dict[str, int]:
    """Return the numbers that a site published in place of unknown values of its queue and its hosts, by attribute."""
    published = dict(element.published)
    hosts = (each for each in glue1.HOSTS if isinstance(getattr(element.hosts, each.field), NotANumber))
    return {
        each.name: published[each.name] for each in (*_not_known(element), *hosts) if each.name in published
    }


def _templates(element: GlueComputingElement) -> dict[str, int]:
    told = {each.name: TEMPLATE.get(each.name, _OF_KINDS.get(each.kind)) for each in _not_known(element)}
    return {name: number for name, number in told.items() if number is not None}


def _not_known(element: GlueComputingElement) -> list[Attribute]:
    return [
        each
        for each in glue1.ELEMENT
        if each.name.startswith(_OF_QUEUES) and isinstance(getattr(element, each.field), NotANumber)
    ]


def _values(table: Iterable[Attribute], record: object) -> Attributes:
    return {each.name: value(each.kind, getattr(record, each.field)) for each in table}


def _storage(bindings: tuple[StorageBinding, ...]) -> Attributes:
    names = [each.storage_element for each in bindings]
    return {
        "GlueCESEBindGroupSEUniqueID": names,
        "CloseStorageElements": [
            {"name": each.storage_element} | ({"mount": each.mount_point} if each.mount_point else {})
            for each in bindings
        ],
    }


def _bindings(said: Mapping[str, Any]) -> tuple[StorageBinding, ...]:
    mounts = dict.fromkeys(_texts(said.get("GlueCESEBindGroupSEUniqueID")), "")
    close = said.get("CloseStorageElements")
    for each in close if isinstance(close, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get("name"), str):
            mounts[each["name"]] = str(each.get("mount", ""))
    return tuple(StorageBinding(storage_element=name, mount_point=mount) for name, mount in mounts.items())


def _texts(said: object) -> list[str]:
    match said:
        case bool():
            return ["true" if said else "false"]
        case str() | int() | float():
            return [str(said)]
        case list() | tuple():
            return [text for each in said for text in _texts(each)]
        case _:
            return []


def _first(texts: Mapping[str, list[str]], name: str) -> str:
    return next(iter(texts.get(name, ())), "")
