"""Kinds of work of a plan: which comes first, which pilot class it needs, and whose pilots may take it."""

from typing import Any

import pytest

from tests.unit.matching.strategies import asks
from tests.unit.provisioning.test_plan import WITH_GPUS
from wms.matching.grouping import processor_tags, processors_needed
from wms.provisioning.demand import WorkKind
from wms.provisioning.open_work import OpenWork
from wms.site import PilotOwner


def work(elements: tuple[int, ...] = (0, 1), **fields: Any) -> OpenWork:
    kind = {key: fields.pop(key) for key in ("hosts",) if key in fields}
    asked = asks(**fields)
    return OpenWork(
        WorkKind(requirements=asked, jobs=1, processors=processors_needed(asked), elements=elements, **kind)
    )


@pytest.mark.parametrize(
    "picky",
    [
        work((0,)),
        work(hosts={0: WITH_GPUS}),
        work(cpu_segment=1_000),
        work(tags=processor_tags(2)),
        work(min_ram_mb=100),
    ],
)
def test_work_that_fewer_pilots_can_serve_comes_first(picky: OpenWork) -> None:
    plain = work()
    assert sorted([plain, picky], key=lambda each: each.pickiness) == [picky, plain]


def test_work_names_the_pilot_class_that_it_needs_at_an_element() -> None:
    wanted = work(hosts={1: WITH_GPUS})
    assert (wanted.asks(0), wanted.asks(1)) == ("", WITH_GPUS.name)


def test_private_pilots_take_their_owners_jobs_alone_and_generic_ones_all_that_ask_for_no_others() -> None:
    mine = PilotOwner("g", "o")
    other = PilotOwner("g", "p")
    assert work().takes(None)
    assert work().takes(mine)
    assert not work().takes(other)
    assert not work(pilot_types=("private",)).takes(None)
