"""Requirements and resources for tests: short names that often meet."""

from typing import Any

from hypothesis import strategies as st

from wms.matching.clauses import Mismatch, failing_parts, parts, refusal
from wms.matching.grouping import Requirements
from wms.queue_index.index import QueueIndex
from wms.site import Resource


def asks(**fields: Any) -> Requirements:
    given: dict[str, Any] = {"owner": "o", "owner_group": "g", "vo": "v", "setup": "s", "cpu_segment": 500}
    given.update(fields)
    return Requirements(**given)


def offers(**fields: Any) -> Resource:
    given: dict[str, Any] = {"setup": "s", "vo": "v", "cpu_time": 1_000}
    given.update(fields)
    return Resource(**given)


def mismatches(wanted: Requirements, offered: Resource) -> list[Mismatch]:
    """Every clause that does not hold, a refusal of the resource first."""
    refused = refusal(offered)
    return [*([refused] if refused else []), *failing_parts(parts(wanted), offered)]


def new_index(*, groups: dict[str, Any] | None = None, **options: Any) -> Any:
    """An index that takes plain numbers for ids, with shares of groups of the VO `v`."""
    return QueueIndex(groups=of_v(groups or {}), **options)


def of_v(groups: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {("v", name): share for name, share in groups.items()}


_names = st.sampled_from(["A", "B", "C", "a", "b"])
_sets = st.lists(_names, max_size=2).map(tuple)
_tags = st.lists(
    st.sampled_from(
        ["gpu", "GPU", "2Processors", "2processors", "MultiProcessor", "1Processors", "WholeNode", "ANY"]
    ),
    max_size=2,
).map(tuple)
_rarely = {"v": st.sampled_from(["v", "v", "v", "w"]), "s": st.sampled_from(["s", "s", "s", "t"])}


def requirements() -> st.SearchStrategy[Requirements]:
    return st.builds(
        Requirements,
        owner=st.sampled_from(["o", "p"]),
        owner_group=st.sampled_from(["g", "h"]),
        vo=_rarely["v"],
        setup=_rarely["s"],
        cpu_segment=st.sampled_from([500, 5_000]),
        pilot_types=_sets,
        sites=_sets,
        banned_sites=_sets,
        grid_ces=_sets,
        platforms=_sets,
        job_types=_sets,
        tags=_tags,
        min_ram_mb=st.sampled_from([0, 0, 1_000, 4_000]),
        min_disk_mb=st.sampled_from([0, 0, 0, 1_000, 4_000]),
        certificate_subject=st.sampled_from(["", "", "/CN=o"]),
        fqans=st.sampled_from([(), (), ("/v/Role=r",)]),
    )


def resources() -> st.SearchStrategy[Resource]:
    value = st.sampled_from(["", "any", "ANY", "A", "B", "b"])
    values = st.lists(st.sampled_from(["A", "B", "C", "C", "Any"]), max_size=2).map(tuple)
    return st.builds(
        Resource,
        setup=_rarely["s"],
        vo=_rarely["v"],
        cpu_time=st.sampled_from([0, 499, 500, 5_000, 10**6]),
        site=value,
        grid_ce=value,
        pilot_type=value,
        platforms=values,
        job_types=values,
        banned_job_types=st.lists(_names, max_size=1).map(tuple),
        memory_mb=st.sampled_from([0, 999, 2_000, 8_000]),
        disk_mb=st.sampled_from([0, 0, 999, 2_000, 8_000]),
        processors=st.integers(1, 3),
        tags=_tags,
        required_tags=_tags,
        generic=st.booleans(),
        owner=st.sampled_from(["o", "p"]),
        owner_group=st.sampled_from(["g", "h"]),
        job_sharing=st.booleans(),
    )
