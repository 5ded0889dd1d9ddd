"""Elements for explanations of waits."""

from typing import Any

from hypothesis import strategies as st

from wms.site import ComputingElement
from wms.why.verdict import ElementSupply


def element(ce: str = "ce", **fields: Any) -> ComputingElement:
    given: dict[str, Any] = {"site": "A", "ce": ce, "setup": "s", "slots": 10, "max_cpu_time": 1_000}
    return ComputingElement(**(given | fields))


def place(ce: str = "ce", **fields: Any) -> ElementSupply:
    return ElementSupply(element=element(ce, **fields))


_NAMES = st.lists(st.sampled_from(["A", "B", "C"]), max_size=2).map(tuple)


_TAGS = st.lists(st.sampled_from(["gpu", "ssd"]), max_size=2).map(tuple)


def elements() -> st.SearchStrategy[ComputingElement]:
    return st.builds(
        ComputingElement,
        site=st.sampled_from(["A", "B"]),
        ce=st.sampled_from(["A", "B", "C"]),
        slots=st.integers(0, 20),
        max_cpu_time=st.sampled_from([100, 500, 5_000]),
        setup=st.sampled_from(["s", "s", "t", ""]),
        submit_pools=_NAMES,
        pilot_type=st.sampled_from(["", "A"]),
        platforms=_NAMES,
        job_types=_NAMES,
        vos=st.sampled_from([(), (), ("v",), ("w",)]),
        memory_mb=st.sampled_from([0, 2_000, 8_000]),
        tags=_TAGS,
        required_tags=_TAGS,
        slots_per_pilot=st.integers(1, 3),
        cores_per_pilot=st.integers(1, 3),
    )


def places() -> st.SearchStrategy[list[ElementSupply]]:
    one = st.builds(
        ElementSupply,
        element=elements(),
        fresh=st.booleans(),
        running=st.integers(0, 2),
        free_slots=st.integers(0, 2),
    )
    return st.lists(one, max_size=8)


def at(**fields: Any) -> ElementSupply:
    offered = {name: fields.pop(name) for name in list(fields) if name in ComputingElement.__struct_fields__}
    return ElementSupply(element=element(**offered), **fields)
