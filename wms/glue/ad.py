"""The ad of a computing element as gLite's matchmaker had it: GLUE 1.x flattened into attributes with values.

Values are plain - texts, numbers, truths, lists, records - so that they travel in a message as they are; what is an
expression in such an ad stands beside them, as text. What is not known is left out, but where users' expressions look: these see
the numbers that gLite's did (`matchable`).

Names are those of the ad that the EGEE project's slides of 2005 show, and of GLUE 1.3. Limits of time are minutes, as their
names have always meant.
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
"""Values (`Value`) by the names of attributes."""

EXPRESSIONS = {
    "AuthorizationCheck": "member(other.CertificateSubject, GlueCEAccessControlBaseRule)"
    ' || member(strcat("VO:", other.VirtualOrganisation), GlueCEAccessControlBaseRule)'
    ' || isString(other.VOMS_FQAN) && member(strcat("VOMS:", other.VOMS_FQAN), GlueCEAccessControlBaseRule)',
    "CloseOutputSECheck": "isUndefined(other.OutputSE) || member(other.OutputSE, GlueCESEBindGroupSEUniqueID)",
}
"""What such an ad says by expressions: who may come in, and whether the storage that a job writes to is close."""

CONTACTS = "ContactStrings"
"""No name of GLUE either: all ways to a queue that has several; GlueCEInfoContactString is the one that is used."""

_OF_QUEUES = ("GlueCEPolicy", "GlueCEState")
_OF_KINDS = {ValueKind.LIMIT: NOT_KNOWN, ValueKind.MINUTES: NOT_KNOWN, ValueKind.WAIT: 2_146_660_842}
TEMPLATE = {"GlueCEStateWaitingJobs": 444_444}
"""What gLite's templates had where nobody put in a number; counts of which they had 0 cannot be told from none, and stay out."""

HEPSPEC06 = "GlueHostBenchmarkHEPSPEC06"
"""No name of GLUE 1.x, which hides this benchmark in a text."""


class GlueAd(Struct, frozen=True, kw_only=True):
    """What is known of an element, since when, and for how long."""

    element: GlueComputingElement
    updated_at: datetime
    lifetime_seconds: int


def attributes(element: GlueComputingElement) -> Attributes:
    """Return all that is known of an element, by the attributes' names."""
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
    """Return the element that attributes describe, and that `attributes` makes the same of; raises Rejected without an id."""
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
        published=placeholders(glue1.ELEMENT, whole),
    )


def matchable(element: GlueComputingElement) -> Attributes:
    """Return the attributes as expressions see them: lists that are searched though they are empty, and numbers as in gLite.

    gLite's matchmaker had what sites published, 999999999 for a limit that is not known or 0 for one that was not set; users'
    expressions reckon with that (`other.GlueCEPolicyMaxCPUTime >= 720 || other.GlueCEPolicyMaxCPUTime == 0`). What nobody
    published has the number of gLite's templates, where that can be told from a number that is known.
    """
    searched: Attributes = {"GlueCEAccessControlBaseRule": [], "GlueCESEBindGroupSEUniqueID": []}
    return searched | _templates(element) | attributes(element) | as_published(element)


def as_published(element: GlueComputingElement) -> dict[str, int]:
    """Return what a site published of its queue where a number is not known, by the attributes' names."""
    published = dict(element.published)
    return {each.name: published[each.name] for each in _not_known(element) if each.name in published}


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
