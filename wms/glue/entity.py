"""Entities of GLUE 2.0, to which its XML, LDIF and JSON forms are converted, and the computing services built from them.

An entity has a kind (`ComputingShare`), texts by attribute, and links to other entities by their kind. A form may nest an entity in
another instead of naming it; its reader then makes the link. Forms differ in the direction of links, so both directions are read.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct, field

from wms.errors import Rejected
from wms.glue import glue2
from wms.glue.attribute import Attribute, fields, required
from wms.glue.glue2 import (
    Application,
    Benchmark,
    Endpoint,
    Environment,
    Manager,
    Service,
    Share,
    ToStorageService,
)

SIZE_LIMIT = 32 * 2**20
"""The size in bytes of the largest document that is read. A large site's has under one megabyte, a whole grid's BDII some ten."""
ENTITIES_LIMIT = 100_000

KINDS = {
    "ComputingService": "Service",
    "ComputingEndpoint": "Endpoint",
    "ComputingShare": "Share",
    "ComputingManager": "Manager",
    "ExecutionEnvironment": "Resource",
    "ApplicationEnvironment": "ApplicationEnvironment",
    "ToStorageService": "ToStorageService",
    "Benchmark": "Benchmark",
    "MappingPolicy": "Policy",
    "AccessPolicy": "Policy",
}
"""The kinds of entities that are read, with the name that links in the schema use for each.

Some producers use the kind itself in links.
"""


class Entity(Struct):
    """An entity of GLUE 2.0. `links` has the identifiers of linked entities by their kind: `Service`, `Endpoint`, `Share`, ..."""

    kind: str
    texts: dict[str, list[str]] = field(default_factory=dict)
    links: dict[str, list[str]] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The identifier of the entity. Raise Rejected if it has none."""
        return required(self.texts, "ID", self.kind)

    def say(self, name: str, text: str) -> None:
        """Add a value to the attribute `name`."""
        self.texts.setdefault(name, []).append(text)

    def link(self, to: str, identifier: str) -> None:
        """Add a link to an entity of kind `to`, unless it is already there or has no identifier."""
        links = self.links.setdefault(KINDS.get(to, to), [])
        if identifier and identifier not in links:
            links.append(identifier)


def services(entities: Sequence[Entity]) -> list[Service]:
    """Return the computing services that the entities form. Entities that belong to no service are left out.

    Raise Rejected for an entity without an identifier, and for too many entities.
    """
    if len(entities) > ENTITIES_LIMIT:
        raise Rejected("GLUE_TOO_LARGE", f"{len(entities):,} entities, at most {ENTITIES_LIMIT:,} are read")
    graph = _Graph(entities)
    return [graph.service(each) for each in entities if each.kind == "ComputingService"]


class _Graph:
    """All entities of a document, by kind and identifier, with the links between them."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        self._of_kind: dict[str, dict[str, Entity]] = defaultdict(dict)
        self._linked: dict[tuple[str, str], list[str]] = defaultdict(list)
        for each in entities:
            self._of_kind[each.kind].setdefault(self._key(each), each)
        for kind, members in self._of_kind.items():
            for key, each in members.items():
                for to, identifiers in each.links.items():
                    for identifier in identifiers:
                        self._linked[f"{kind}>{to}", identifier].append(key)

    def _key(self, entity: Entity) -> str:
        """Return a unique key for an entity: its identifier.

        A number is added to repeated ones of policies, which ARC repeats in all shares.
        """
        taken = self._of_kind[entity.kind]
        identifier = entity.id
        return (
            f"{identifier}#{len(taken)}"
            if KINDS[entity.kind] == "Policy" and identifier in taken
            else identifier
        )

    def _related(self, kind: str, to: Entity, *, by: str | None = None) -> list[Entity]:
        """Return the entities of a kind that are linked with `to` in either direction.

        `by` names the link in `to`, if it differs from the usual name of that kind.
        """
        ids = dict.fromkeys(
            [*self._linked[f"{kind}>{KINDS[to.kind]}", to.id], *to.links.get(by or KINDS[kind], ())]
        )
        return [self._of_kind[kind][each] for each in ids if each in self._of_kind[kind]]

    def _ids(self, kind: str, to: Entity) -> tuple[str, ...]:
        return tuple(sorted(each.id for each in self._related(kind, to)))

    def service(self, entity: Entity) -> Service:
        managers = self._related("ComputingManager", entity)
        environments = [
            each for manager in managers for each in self._related("ExecutionEnvironment", manager)
        ]
        applications = [each for at in managers for each in self._related("ApplicationEnvironment", at)]
        return Service(
            id=entity.id,
            **_said(glue2.SERVICE, entity),
            endpoints=tuple(map(self._endpoint, self._related("ComputingEndpoint", entity))),
            shares=tuple(map(self._share, self._related("ComputingShare", entity))),
            managers=tuple(Manager(id=each.id, **_said(glue2.MANAGER, each)) for each in managers),
            environments=tuple(map(self._environment, environments)),
            applications=tuple(map(self._application, applications)),
            storage=tuple(_storage(each, entity.id) for each in self._related("ToStorageService", entity)),
        )

    def _endpoint(self, entity: Entity) -> Endpoint:
        return Endpoint(
            id=entity.id,
            **_said(glue2.ENDPOINT, entity),
            shares=self._ids("ComputingShare", entity),
            rules=_rules(self._related("AccessPolicy", entity)),
        )

    def _share(self, entity: Entity) -> Share:
        return Share(
            id=entity.id,
            **_said(glue2.SHARE, entity),
            endpoints=self._ids("ComputingEndpoint", entity),
            environments=self._ids("ExecutionEnvironment", entity),
            rules=_rules(self._related("MappingPolicy", entity)),
        )

    def _environment(self, entity: Entity) -> Environment:
        benchmarks = self._related("Benchmark", entity)
        return Environment(
            id=entity.id,
            **_said(glue2.ENVIRONMENT, entity),
            manager=_first(self._ids("ComputingManager", entity)),
            shares=self._ids("ComputingShare", entity),
            benchmarks=tuple(Benchmark(id=each.id, **_said(glue2.BENCHMARK, each)) for each in benchmarks),
        )

    def _application(self, entity: Entity) -> Application:
        manager = _first(self._ids("ComputingManager", entity))
        return Application(id=entity.id, **_said(glue2.APPLICATION, entity), manager=manager)


def _storage(entity: Entity, service: str) -> ToStorageService:
    others = [each for each in entity.links.get("Service", ()) if each != service]
    storage = _first([*entity.links.get("StorageService", ()), *others])
    return ToStorageService(id=entity.id, **_said(glue2.STORAGE_BINDING, entity), storage_service=storage)


def _said(table: Sequence[Attribute], entity: Entity) -> dict[str, Any]:
    return fields(table, entity.texts)


def _rules(policies: Iterable[Entity]) -> tuple[str, ...]:
    return tuple(rule.strip() for each in policies for rule in each.texts.get("Rule", ()) if rule.strip())


def _first(identifiers: Sequence[str]) -> str:
    return identifiers[0] if identifiers else ""
