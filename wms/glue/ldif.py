"""GLUE in LDIF (RFC 2849), as a BDII or ARC's own LDAP server publishes it. Both versions of GLUE may be in one document.

Only content records are read, not change records or values by URL. Names of attributes are compared without regard to case, as in
LDAP.
"""

import base64
from collections.abc import Iterator, Mapping, Sequence

from wms.errors import Rejected, shown
from wms.glue import glue1
from wms.glue.entity import ENTITIES_LIMIT, KINDS, SIZE_LIMIT, Entity, services
from wms.glue.glue2 import Service

LINES_LIMIT = 50 * ENTITIES_LIMIT

Entry = dict[str, list[str]]
"""The values of an LDIF entry's attributes by their names in lower case, `dn` among them."""

_PREFIXES = (
    # The longer stands before what it begins with.
    "glue2computingservice",
    "glue2computingendpoint",
    "glue2computingshare",
    "glue2computingmanager",
    "glue2executionenvironment",
    "glue2applicationenvironment",
    "glue2tostorageservice",
    "glue2mappingpolicy",
    "glue2accesspolicy",
    "glue2benchmark",
    "glue2service",
    "glue2endpoint",
    "glue2share",
    "glue2manager",
    "glue2resource",
    "glue2policy",
    "glue2entity",
)
_CLASSES = {f"glue2{kind}".casefold(): kind for kind in KINDS}
_LINKS = {kind.casefold(): kind for kind in (*KINDS, *KINDS.values(), "StorageService")}


def read_ldif(data: bytes, limit: int = SIZE_LIMIT) -> tuple[list[Entry], list[str]]:
    """Return the entries of an LDIF document of at most `limit` bytes, and an error for each entry that cannot be read.

    An unreadable line invalidates its entry alone. Raise Rejected if the document is too large, or if no entry can be read.
    """
    if len(data) > limit:
        raise Rejected("GLUE_TOO_LARGE", f"{len(data):,} bytes of LDIF, at most {limit:,} are read")
    if data.count(b"\n") > LINES_LIMIT:
        raise Rejected("GLUE_TOO_LARGE", f"more than {LINES_LIMIT:,} lines")
    entries: list[Entry] = []
    faults: list[str] = []
    entry: Entry = {}
    fault = ""
    for number, line in (*_unfolded(data.decode("utf-8", "replace")), (0, "")):
        if line:
            fault = fault or _add(entry, line, number)
            continue
        if fault:
            name = shown(_one(entry, "dn"), 200)
            faults.append(f"{fault}; its entry is lost: {name}" if name else fault)
        elif "dn" in entry:
            entries.append(entry)
        entry, fault = {}, ""
    if faults and not entries:
        raise Rejected("GLUE_INVALID", faults[0])
    return entries, faults


def glue2_services(entries: Sequence[Entry]) -> list[Service]:
    """Return the computing services of GLUE 2.0 among the entries. Raise Rejected if an entity has no identifier."""
    return services([entity for entry in entries if (entity := _entity(entry)) is not None])


def glue1_elements(entries: Sequence[Entry]) -> list[glue1.GlueComputingElement]:
    """Return the computing elements of GLUE 1.x among the entries, each with its hosts and storage bindings.

    Raise Rejected if an element has no identifier.
    """
    of_class: dict[str, list[Entry]] = {}
    for entry in entries:
        for name in {each.casefold() for each in entry.get("objectclass", ())}:
            of_class.setdefault(name, []).append(entry)
    # Identifiers are compared as LDAP compares them: without regard to case.
    clusters = {
        _one(each, "glueclusteruniqueid").casefold(): each for each in of_class.get("gluecluster", ())
    }
    hosts = {
        _chunk(each, "GlueClusterUniqueID").casefold(): each
        for each in reversed(of_class.get("gluesubcluster", ()))
    }
    bindings: dict[str, list[Entry]] = {}
    for each in of_class.get("gluecesebind", ()):
        bindings.setdefault(_one(each, "gluecesebindceuniqueid").casefold(), []).append(each)
    elements = []
    for ce in of_class.get("gluece", ()):
        cluster = (_foreign(ce, "GlueClusterUniqueID") or _one(ce, "gluecehostingcluster")).casefold()
        site = _foreign(clusters.get(cluster, {}), "GlueSiteUniqueID") or _foreign(ce, "GlueSiteUniqueID")
        bound = bindings.get(_one(ce, "glueceuniqueid").casefold(), ())
        elements.append(glue1.element(ce, hosts.get(cluster, {}), list(bound), site=site))
    return elements


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """Yield the logical lines of an LDIF text, each with the number of its first line.

    Continued lines are joined, comments are left out, empty lines are kept.
    """
    pieces: list[str] = []
    first = 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.removesuffix("\r")
        if line.startswith(" ") and pieces:
            pieces.append(line[1:])
            continue
        if pieces and not pieces[0].startswith("#"):
            yield first, "".join(pieces)
        pieces, first = ([line] if line else []), number
        if not line:
            yield number, ""
    if pieces and not pieces[0].startswith("#"):
        yield first, "".join(pieces)


def _add(entry: Entry, line: str, number: int) -> str:
    """Add the attribute of a line to the entry. Return an error if the line is malformed, else an empty text."""
    name, colon, rest = line.partition(":")
    if not colon:
        return f"line {number} is not LDIF: {shown(line, 60)}"
    if rest.startswith("<"):
        return ""
    value = _decoded(rest[1:].strip()) if rest.startswith(":") else rest.strip()
    if value is None:
        return f"line {number} is not base64: {shown(line, 60)}"
    entry.setdefault(name.partition(";")[0].strip().casefold(), []).append(value)
    return ""


def _decoded(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except ValueError:
        return None


def _entity(entry: Entry) -> Entity | None:
    kinds = [
        _CLASSES[each.casefold()] for each in entry.get("objectclass", ()) if each.casefold() in _CLASSES
    ]
    if not kinds:
        return None
    entity = Entity(kinds[0])
    for name, values in entry.items():
        local = next((name.removeprefix(each) for each in _PREFIXES if name.startswith(each)), "")
        if local.endswith("foreignkey"):
            to = local.removesuffix("foreignkey")
            for value in values:
                entity.link(_LINKS.get(to, to), value)
        elif local:
            entity.texts.setdefault("Rule" if local == "rule" else local, []).extend(values)
    return entity


def _one(entry: Mapping[str, Sequence[str]], name: str) -> str:
    return next(iter(entry.get(name, ())), "")


def _foreign(entry: Mapping[str, Sequence[str]], name: str) -> str:
    return _keyed(entry.get("glueforeignkey", ()), name)


def _chunk(entry: Mapping[str, Sequence[str]], name: str) -> str:
    return _keyed(entry.get("gluechunkkey", ()), name)


def _keyed(keys: Sequence[str], name: str) -> str:
    """Return the value of the first of the texts `name=value` with this name; empty if there is none."""
    for key in keys:
        said, _, value = key.partition("=")
        if said.strip().casefold() == name.casefold():
            return value.strip()
    return ""
