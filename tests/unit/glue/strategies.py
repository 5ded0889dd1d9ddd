"""Records of GLUE as anybody may publish them."""

from typing import Any

from hypothesis import strategies as st

from wms.glue import glue1, glue2
from wms.glue.attribute import Attribute, ValueKind
from wms.glue.quantity import UNKNOWN, UNLIMITED

_PRINTABLE = st.characters(codec="utf-8", exclude_categories=("C", "Z"), include_characters=" /:;=\"'\\<&>")
URLS = st.just("https://ce.example.org/arex")
# A letter first: nothing else then need be filtered out, neither blanks nor what stands for «unknown».
TEXTS = st.text(_PRINTABLE, max_size=20).map(lambda text: f"x{text}".strip())
LIMITS = st.integers(1, 9_998) | st.sampled_from([UNKNOWN, UNLIMITED])
KINDS: dict[ValueKind, st.SearchStrategy[Any]] = {
    ValueKind.TEXT: TEXTS | st.just(""),
    ValueKind.TEXTS: st.lists(TEXTS, max_size=3, unique=True).map(tuple),
    ValueKind.COUNT: st.integers(0, 400_000) | st.just(UNKNOWN),
    ValueKind.SIZE: st.integers(1, 10**5) | st.just(UNKNOWN),
    ValueKind.WAIT: st.integers(0, 400_000) | st.just(UNKNOWN),
    ValueKind.LIMIT: LIMITS,
    ValueKind.SECONDS: LIMITS,
    ValueKind.MINUTES: st.integers(1, 10**5).map(lambda n: n * 60) | st.sampled_from([UNKNOWN, UNLIMITED]),
    ValueKind.FLAG: st.sampled_from([True, False, None]),
    ValueKind.REAL: st.floats(0, 1e6).map(lambda x: round(x, 3)) | st.none(),
}


MUST = {ValueKind.TEXT: TEXTS, ValueKind.REAL: st.floats(0, 1e6).map(lambda x: round(x, 3))}
"""What is told where something must be told; else it would come back as its placeholder."""


def said(table: tuple[Attribute, ...]) -> st.SearchStrategy[dict[str, Any]]:
    """Give values for the fields of a record; what must be told is, or else comes back as its placeholder."""
    fields = {}
    for each in table:
        kind = st.sampled_from(sorted(each.among)) if each.among else KINDS[each.kind]
        must = each.placeholder is not None and not each.among
        fields[each.field] = MUST.get(each.kind, kind) if must else kind
    return st.fixed_dictionaries(fields | ({"url": URLS} if "url" in fields else {}))


def _records(kind: Any, table: tuple[Attribute, ...], name: str) -> st.SearchStrategy[tuple[Any, ...]]:
    many = st.lists(said(table), max_size=3)
    return many.map(lambda found: tuple(kind(id=f"urn:{name}:{n}", **each) for n, each in enumerate(found)))


@st.composite
def services(draw: st.DrawFn) -> glue2.Service:
    """Give services whose parts all belong together."""
    managers = (glue2.Manager(id="urn:manager:0", **draw(said(glue2.MANAGER))),)
    environments = tuple(
        glue2.Environment(
            id=f"urn:environment:{n}",
            **draw(said(glue2.ENVIRONMENT)),
            manager="urn:manager:0",
            benchmarks=draw(_records(glue2.Benchmark, glue2.BENCHMARK, f"benchmark{n}")),
        )
        for n in range(draw(st.integers(0, 2)))
    )
    return glue2.Service(
        id="urn:service",
        **draw(said(glue2.SERVICE)),
        endpoints=draw(_records(glue2.Endpoint, glue2.ENDPOINT, "endpoint")),
        shares=tuple(
            glue2.Share(id=f"urn:share:{n}", **draw(said(glue2.SHARE)), rules=draw(KINDS[ValueKind.TEXTS]))
            for n in range(draw(st.integers(0, 3)))
        ),
        managers=managers,
        environments=environments,
        applications=tuple(
            glue2.Application(id=f"urn:app:{n}", app_name=draw(TEXTS), manager="urn:manager:0")
            for n in range(draw(st.integers(0, 2)))
        ),
        storage=tuple(
            glue2.ToStorageService(
                id=f"urn:bind:{n}", local_path="/se", remote_path="/", storage_service=f"urn:se:{n}"
            )
            for n in range(draw(st.integers(0, 2)))
        ),
    )


@st.composite
def elements(draw: st.DrawFn) -> glue1.GlueComputingElement:
    """Give GLUE 1.x elements."""
    said_of_ce = draw(said(glue1.ELEMENT))
    names = draw(st.lists(TEXTS, max_size=3, unique=True))
    return glue1.GlueComputingElement(
        **{**said_of_ce, "id": draw(TEXTS)},
        site=draw(TEXTS),
        hosts=glue1.GlueHosts(**draw(said(glue1.HOSTS)), hepspec06=draw(KINDS[ValueKind.REAL])),
        storage=tuple(
            glue1.StorageBinding(storage_element=name, mount_point=draw(TEXTS | st.just("")))
            for name in names
        ),
    )
