"""Parses the documents of servers: GLUE in XML, ARC's JSON, LDIF, or ARCHERY's list of endpoints, as ARCHERY publishes it in the DNS.

In GLUE an endpoint with the capability `information.discovery.registry` is an index. If the document names an ARC endpoint but does not
describe its service, that endpoint is a computing element to be asked itself. ARCHERY's list has a line for each endpoint:

    u=https://ce.example.org/arex t=org.nordugrid.arcrest
    u=https://index.example.org/sweden.txt t=archery.group s=0

`u` is the address, `t` the type, and `s=0` marks an endpoint that is out of use. Lines may be quoted, as `dig +short TXT` prints them.
Lines without an address (`o=group id=nordic`) are ignored.
"""

import re
from collections.abc import Iterable, Iterator

from wms.discovery.address import Address, Kind, address
from wms.discovery.server_answers import FoundElement, ServerAnswer
from wms.errors import Rejected, shown
from wms.glue import ldif, versions
from wms.glue.arc_json import tree_of_json
from wms.glue.entity import services
from wms.glue.glue1 import GlueComputingElement
from wms.glue.glue2_xml import tree_of_xml
from wms.glue.tree import TreeNode, entities
from wms.site import is_wild

SIZE_LIMIT = 8 * 2**20
"""How many bytes a server's document may have. The document of a large ARC site has under one megabyte."""
LEADS_LIMIT = 10_000
"""How many addresses of other servers are read from one document."""
NAME_LIMIT = 200
"""How many characters the name of a site or a computing element may have."""
REGISTRY = "information.discovery.registry"
INDEXES = frozenset(
    {"archery", "archery.group", "archery.service", "org.nordugrid.archery", "org.nordugrid.ldapegiis"}
)
"""The types of endpoints that are indexes: they lead to further endpoints."""
DOOR = "org.nordugrid.arcrest"
"""The type of endpoint at which a computing element is asked. An element's other endpoints (EMI-ES, GridFTP, LDAP) describe the same queues."""
_PAIR = re.compile(r"(?<![a-z])([a-z]{1,32})=(\S*)")


def read_index(data: bytes, base: str) -> ServerAnswer:
    """Parse the document of an index server: GLUE in XML, ARC's JSON, LDIF, or ARCHERY's list of endpoints.

    `base` is the URL of the document, against which relative addresses are resolved. Raise Rejected if the document is larger than `SIZE_LIMIT`
    or in no known format.
    """
    _bounded(data)
    match _form(data):
        case "xml":
            return _of_tree(tree_of_xml(data), base)
        case "json":
            return _of_tree(tree_of_json(data), base)
        case "ldif":
            return _of_ldif(data)
        case _:
            return _of_list(data, base)


def read_element(data: bytes, door: Address) -> ServerAnswer:
    """Parse the document of the ARC element whose address is `door`. Each of its queues becomes one computing element of the answer.

    The site is the host of the address, whatever the document says. Raise Rejected if the document is too large or cannot be parsed.
    """
    _bounded(data)
    read = tree_of_json if _form(data) == "json" else tree_of_xml
    queues = [queue for each in services(entities(read(data))) for queue in versions.elements(each)]
    return ServerAnswer(elements=_elements((each, door.host) for each in queues))


def _bounded(data: bytes) -> None:
    if len(data) > SIZE_LIMIT:
        raise Rejected("INDEX_TOO_LARGE", f"{len(data):,} bytes, at most {SIZE_LIMIT:,} are read")


def _form(data: bytes) -> str:
    start = data[:4_096].removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] == b"<":
        return "xml"
    if start[:1] in (b"{", b"["):
        return "json"
    return "ldif" if re.search(rb"^(dn|version):", start, re.MULTILINE) else "list"


def _elements(queues: Iterable[tuple[GlueComputingElement, str]]) -> tuple[FoundElement, ...]:
    """Return one computing element for each pair of a queue and its site. Pairs are left out if either name is invalid."""
    told = (FoundElement(site=site, glue=queue) for queue, site in queues)
    return tuple(each for each in told if _is_name(each.site) and _is_name(each.name))


def _is_name(text: str) -> bool:
    return 0 < len(text) <= NAME_LIMIT and text.isprintable() and not is_wild(text)


def _own_site(queue: GlueComputingElement) -> str:
    door = queue.contact or f"//{queue.host_name or queue.id}"
    return queue.site or door.partition("//")[2].partition("/")[0].partition(":")[0] or queue.hosting_cluster


def _of_ldif(data: bytes) -> ServerAnswer:
    entries, faults = ldif.read_ldif(data)
    queues = ldif.glue1_elements(entries) or [
        each for service in ldif.glue2_services(entries) for each in versions.elements(service)
    ]
    return ServerAnswer(
        elements=_elements((each, _own_site(each)) for each in queues),
        passed_over=tuple(("an entry", fault) for fault in faults[:LEADS_LIMIT]),
    )


# --- GLUE 2.0 --------------------------------------------------------------------------------------


def _of_tree(root: TreeNode, base: str) -> ServerAnswer:
    queues = [queue for each in services(entities(root)) for queue in versions.elements(each)]
    described = {contact for queue in queues for contact in queue.contacts}
    ends = [(url, kind) for url, kind in _endpoints(root) if kind == "index" or url not in described]
    return _told(_elements((each, _own_site(each)) for each in queues), ends, base)


def _endpoints(root: TreeNode) -> Iterator[tuple[str, Kind]]:
    """Yield the URL and the kind of each endpoint in the document that is an index or an ARC element."""
    for node in _every(root):
        if node.name in ("Endpoint", "ComputingEndpoint"):
            said = {each.name: each.text.strip() for each in node.nodes}
            if any(each.name == "Capability" and each.text.strip() == REGISTRY for each in node.nodes):
                yield said.get("URL", ""), "index"
            elif said.get("InterfaceName") == DOOR:
                yield said.get("URL", ""), "element"


def _every(root: TreeNode) -> Iterator[TreeNode]:
    left = [root]
    while left:
        node = left.pop()
        yield node
        left += reversed(node.nodes)


# --- ARCHERY ---------------------------------------------------------------------------------------


def _of_list(data: bytes, base: str) -> ServerAnswer:
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise Rejected("INDEX_INVALID", "neither GLUE nor a list of endpoints") from None
    records = [dict(_PAIR.findall(line.replace('"', " "))) for line in lines]
    if lines and not any(record.keys() & {"u", "o"} for record in records):
        raise Rejected("INDEX_INVALID", "neither GLUE nor a list of endpoints")
    ends = [end for record in records if (end := _end(record))]
    return _told((), ends, base)


def _end(record: dict[str, str]) -> tuple[str, Kind] | None:
    if "u" not in record or record.get("s", "1") in ("0", "false"):
        return None
    kind = record.get("t", "")
    if kind in INDEXES:
        return record["u"], "index"
    return (record["u"], "element") if kind == DOOR else None


def _told(elements: tuple[FoundElement, ...], ends: Iterable[tuple[str, Kind]], base: str) -> ServerAnswer:
    """Return an answer with these computing elements, and with the addresses of these endpoints as further servers to ask.

    Duplicate endpoints are left out. Malformed endpoints, and those beyond `LEADS_LIMIT`, go to `passed_over`.
    """
    leads: dict[str, Address] = {}
    nowhere: dict[str, str] = {}
    for number, (text, kind) in enumerate(ends):
        if number >= LEADS_LIMIT:
            nowhere[base] = f"over {LEADS_LIMIT:,} addresses in one document"
            break
        try:
            lead = address(text, kind, base)
        except Rejected as error:
            nowhere[shown(text, 100)] = error.message
        else:
            leads.setdefault(lead.key, lead)
    return ServerAnswer(elements=elements, leads=tuple(leads.values()), passed_over=tuple(nowhere.items()))
