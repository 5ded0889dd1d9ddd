"""Whatever is read from outside has a bound: each number, text, list and table of each struct, however deep inside."""

from collections.abc import Iterator
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct, inspect

from services.advertiser.config import Config as AdvertiserConfig
from services.agreement.config import Config as AgreementConfig
from services.agreement.site_script import ListAnswer, ReleaseAnswer, ReserveAnswer
from services.job_manager.config import Config as JobManagerConfig
from services.matcher.config import Config as MatcherConfig
from services.pilot_submitter.config import Config as PilotSubmitterConfig
from tests.unit.messages.examples import UNIONS
from wms.auth.keys import KeySet
from wms.auth.orders import SignedOrder
from wms.auth.principal import Principal
from wms.auth.service_signatures import SignedNotice
from wms.auth.token import _Token
from wms.jobdesc.description import JobDescription
from wms.runtime.pilot_config import PilotConfig

READ: dict[str, Any] = {
    **UNIONS,
    "a job description": JobDescription,
    "a token": _Token,
    "a principal": Principal,
    "public keys": KeySet,
    "a signed order": SignedOrder,
    "a signed notice": SignedNotice,
    "a pilot's configuration": PilotConfig,
    "the advertiser's configuration": AdvertiserConfig,
    "the agreement service's configuration": AgreementConfig,
    "a site's answer to an offer": ReserveAnswer,
    "a site's answer to a release": ReleaseAnswer,
    "a site's list of reservations": ListAnswer,
    "the job manager's configuration": JobManagerConfig,
    "the matcher's configuration": MatcherConfig,
    "the pilot submitter's configuration": PilotSubmitterConfig,
}


@pytest.mark.parametrize("what", READ)
def test_everything_that_is_read_has_a_bound(what: str) -> None:
    assert not list(unbounded(inspect.type_info(READ[what]), "$"))


def unbounded(kind: inspect.Type, place: str) -> Iterator[str]:
    """Yield the places of numbers, texts, lists and tables that may be of any size."""
    match kind:
        case inspect.IntType() | inspect.FloatType():
            bounded = None not in {_first(kind.ge, kind.gt), _first(kind.le, kind.lt)}
        case inspect.StrType() | inspect.BytesType() | inspect.CollectionType() | inspect.DictType():
            bounded = kind.max_length is not None
        case _:
            bounded = isinstance(kind, FINITE)
    if not bounded:
        yield f"{place}: {type(kind).__name__}"
    for name, each in inner(kind):
        yield from unbounded(each, f"{place}{name}")


def _first(*ends: float | None) -> float | None:
    return next((each for each in ends if each is not None), None)


FINITE = (
    inspect.Metadata,
    inspect.UnionType,
    inspect.StructType,
    inspect.NamedTupleType,
    inspect.TupleType,
    inspect.BoolType,
    inspect.NoneType,
    inspect.LiteralType,
    inspect.EnumType,
    inspect.DateTimeType,
    inspect.RawType,
    inspect.AnyType,
)
"""What has no size of its own; the last two are as long as their message, and read by other means (`wms.jobdesc`)."""


def inner(kind: inspect.Type) -> list[tuple[str, inspect.Type]]:
    """Return the types that a type is made of, each with how it is reached."""
    match kind:
        case inspect.Metadata():
            return [("", kind.type)]
        case inspect.CollectionType():
            return [("[]", kind.item_type)]
        case inspect.DictType():
            return [(".keys", kind.key_type), (".values", kind.value_type)]
        case inspect.TupleType():
            return [(f"[{n}]", each) for n, each in enumerate(kind.item_types)]
        case inspect.UnionType():
            return [("", each) for each in kind.types]
        case inspect.StructType() | inspect.NamedTupleType():
            return [(f".{kind.cls.__name__}.{each.name}", each.type) for each in kind.fields]
        case _:
            return []


class Loose(Struct):
    """Everything that the walk must find."""

    number: int
    half: Annotated[float, Meta(ge=0)]
    text: str
    many: tuple[Annotated[int, Meta(ge=0, le=1)], ...]
    table: dict[str, frozenset[bytes]]
    pairs: Annotated[list[tuple[bool, str | None]], Meta(max_length=1)]


def test_the_walk_finds_what_has_none() -> None:
    found = [each.removeprefix("$.Loose.") for each in unbounded(inspect.type_info(Loose), "$")]
    assert found == [
        "number: IntType",
        "half: FloatType",
        "text: StrType",
        "many: VarTupleType",
        "table: DictType",
        "table.keys: StrType",
        "table.values: FrozenSetType",
        "table.values[]: BytesType",
        "pairs[][1]: StrType",
    ]
