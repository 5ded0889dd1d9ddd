"""GLUE 2.0 in XML: read in the schema's form and in ARC's nested form, written in the schema's form.

Documents come from other sites. So their size, depth and number of nodes are bounded before and while they are parsed. A document
type declaration is refused where it begins, so that there are no XML entities to expand.

The schema is the OGF's: GFD-R-P.209 as in `GLUE2.xsd`, namespace `spec_2.0_r1`.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol
from xml.etree.ElementTree import Element, SubElement, indent, tostring
from xml.parsers import expat

from wms.errors import Rejected
from wms.glue import glue2
from wms.glue.attribute import Attribute, texts
from wms.glue.entity import ENTITIES_LIMIT, SIZE_LIMIT, services
from wms.glue.glue2 import Endpoint, Environment, Service, Share, ToStorageService
from wms.glue.tree import DEPTH_LIMIT, TreeNode, entities

NAMESPACE = "http://schemas.ogf.org/glue/2009/03/spec_2.0_r1"
NODES_LIMIT = 100 * ENTITIES_LIMIT
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_UNNAMED_DOMAIN = "urn:wms:any-domain"
_UNNAMED_STORAGE = "urn:wms:unknown-storage"


def read_xml(data: bytes, limit: int = SIZE_LIMIT) -> list[Service]:
    """Return the computing services of an XML document of at most `limit` bytes. Raise Rejected if it is malformed or larger."""
    return services(entities(tree_of_xml(data, limit)))


def tree_of_xml(data: bytes, limit: int = SIZE_LIMIT) -> TreeNode:
    """Return the tree of all nodes of an XML document of at most `limit` bytes. Raise Rejected if it is malformed or larger."""
    if len(data) > limit:
        raise Rejected("GLUE_TOO_LARGE", f"{len(data):,} bytes of XML, at most {limit:,} are read")
    return _Parsing().run(data)


class _Record(Protocol):
    """The common interface of all records of GLUE 2.0."""

    @property
    def id(self) -> str: ...


class _Parsing:
    """The state of parsing one XML document: the nodes that are still open, and the number of nodes so far."""

    def __init__(self) -> None:
        self._root = TreeNode("")
        self._open = [self._root]
        self._texts: list[list[str]] = [[]]
        self._nodes = 0

    def run(self, data: bytes) -> TreeNode:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise Rejected("GLUE_INVALID", f"not XML: {error}") from None
        return self._root

    def _doctype(self, *_: object) -> None:
        raise Rejected("GLUE_INVALID", "the document declares a document type, which is not read")

    def _start(self, name: str, _: object) -> None:
        self._nodes += 1
        if len(self._open) > DEPTH_LIMIT or self._nodes > NODES_LIMIT:
            raise Rejected(
                "GLUE_TOO_LARGE",
                f"more than {DEPTH_LIMIT} elements in each other, or {NODES_LIMIT:,} in all",
            )
        node = TreeNode(name.rpartition(" ")[2])
        self._open[-1].nodes.append(node)
        self._open.append(node)
        self._texts.append([])

    def _text(self, text: str) -> None:
        self._texts[-1].append(text)

    def _end(self, _: str) -> None:
        self._open.pop().text = "".join(self._texts.pop())


def write_xml(published: Sequence[Service]) -> bytes:
    """Return an XML document in UTF-8 with the services, valid against the schema."""
    root = Element("GLUE2", {"xmlns": NAMESPACE})
    # The schema wants the entities by their kinds, whatever they belong to.
    for write in (
        _services,
        _endpoints,
        _shares,
        _managers,
        _environments,
        _policies,
        _benchmarks,
        _applications,
    ):
        for service in published:
            write(root, service)
    for service in published:
        _storage(root, service)
    indent(root)
    written: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _add(
    root: Element, kind: str, identifier: str, base: str | None, said: Iterable[tuple[str, str]]
) -> Element:
    element = SubElement(root, kind, {"BaseType": base} if base else {})
    SubElement(element, "ID").text = _clean(identifier)
    for name, text in said:
        SubElement(element, name).text = _clean(text)
    return element


def _associate(element: Element, **links: Iterable[str]) -> None:
    group = SubElement(element, "Associations")
    for name, identifiers in links.items():
        for identifier in identifiers:
            SubElement(group, f"{name}ID").text = _clean(identifier)


def _clean(text: str) -> str:
    """Return the text without the characters that XML forbids. The other forms of GLUE, from which it may come, allow them."""
    return _FORBIDDEN.sub("", text)


def _entity(
    root: Element, kind: str, base: str | None, record: _Record, table: Sequence[Attribute]
) -> Element:
    return _add(root, kind, record.id, base, texts(table, record))


def _services(root: Element, service: Service) -> None:
    element = _entity(root, "ComputingService", "Service", service, glue2.SERVICE)
    _associate(
        element,
        Endpoint=[each.id for each in service.endpoints],
        Share=[each.id for each in service.shares],
        Manager=[each.id for each in service.managers],
    )


def _endpoints(root: Element, service: Service) -> None:
    for each in service.endpoints:
        element = _entity(root, "ComputingEndpoint", "Endpoint", each, glue2.ENDPOINT)
        _associate(element, Service=[service.id], Share=each.shares, Policy=_policy_ids(each))


def _shares(root: Element, service: Service) -> None:
    for each in service.shares:
        element = _entity(root, "ComputingShare", "Share", each, glue2.SHARE)
        _associate(
            element,
            Endpoint=each.endpoints,
            Resource=each.environments,
            Service=[service.id],
            Policy=_policy_ids(each),
        )


def _managers(root: Element, service: Service) -> None:
    for each in service.managers:
        element = _entity(root, "ComputingManager", "Manager", each, glue2.MANAGER)
        _associate(
            element,
            Service=[service.id],
            Resource=[env.id for env in service.environments if env.manager == each.id],
            ApplicationEnvironment=[app.id for app in service.applications if app.manager == each.id],
        )


def _environments(root: Element, service: Service) -> None:
    for each in service.environments:
        element = _entity(root, "ExecutionEnvironment", "Resource", each, glue2.ENVIRONMENT)
        _associate(
            element,
            Manager=[each.manager],
            Share=each.shares,
            Benchmark=[benchmark.id for benchmark in each.benchmarks],
        )


def _policies(root: Element, service: Service) -> None:
    for endpoint in service.endpoints:
        _policy(root, "AccessPolicy", endpoint, Endpoint=[endpoint.id], Domain=[_UNNAMED_DOMAIN])
    for share in service.shares:
        _policy(root, "MappingPolicy", share, Share=[share.id], Domain=[_UNNAMED_DOMAIN])


def _policy(root: Element, kind: str, of: Endpoint | Share, **links: Iterable[str]) -> None:
    for identifier in _policy_ids(of):
        rules = [("Rule", rule) for rule in of.rules]
        _associate(_add(root, kind, identifier, "Policy", [("Scheme", "basic"), *rules]), **links)


def _policy_ids(of: Endpoint | Share) -> list[str]:
    return [f"{of.id}:policy"] if of.rules else []


def _benchmarks(root: Element, service: Service) -> None:
    for environment in service.environments:
        for each in environment.benchmarks:
            element = _entity(root, "Benchmark", None, each, glue2.BENCHMARK)
            _associate(element, Resource=[environment.id])


def _applications(root: Element, service: Service) -> None:
    for each in service.applications:
        element = _entity(root, "ApplicationEnvironment", None, each, glue2.APPLICATION)
        _associate(element, Resource=_of_manager(service.environments, each.manager), Manager=[each.manager])


def _of_manager(environments: Sequence[Environment], manager: str) -> list[str]:
    return [each.id for each in environments if each.manager == manager]


def _storage(root: Element, service: Service) -> None:
    for each in service.storage:
        element = _entity(root, "ToStorageService", None, each, glue2.STORAGE_BINDING)
        _associate(element, Service=[service.id, _storage_id(each)])


def _storage_id(binding: ToStorageService) -> str:
    return binding.storage_service or _UNNAMED_STORAGE
