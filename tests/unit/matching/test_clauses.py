"""Which queues fit a resource: every clause, the explanations, and the literal reference."""

import pytest
from hypothesis import given, settings

from tests.unit.matching import reference
from tests.unit.matching.strategies import asks, mismatches, offers, requirements, resources
from wms.matching.clauses import Mismatch, fits, left_over, refusal
from wms.matching.grouping import processor_tags

FITTING = [
    (asks(), offers()),
    (asks(sites=("A", "B")), offers(site="A")),
    (asks(sites=("A",)), offers(site="")),
    (asks(sites=("A",)), offers(site="Any")),
    (asks(sites=("ANY",)), offers(site="Z")),
    (asks(banned_sites=("A",)), offers(site="B")),
    (asks(banned_sites=("A",)), offers(site="any")),
    (asks(platforms=("x", "y")), offers(platforms=("y", "z"))),
    (asks(platforms=("x",)), offers(platforms=("z", "any"))),
    (asks(job_types=("MC",)), offers(job_types=("User", "MC"))),
    (asks(tags=("gpu",)), offers(tags=("gpu", "ssd"))),
    (asks(tags=processor_tags(4)), offers(processors=8)),
    (asks(tags=("gpu", "x")), offers(tags=("gpu", "x", "y"), required_tags=("gpu",))),
    (asks(tags=processor_tags(2)), offers(processors=2, required_tags=("MultiProcessor",))),
    (asks(min_ram_mb=2_000), offers(memory_mb=2_000)),
    (asks(cpu_segment=1_000), offers(cpu_time=1_000)),
    (asks(owner_group="h"), offers(generic=True)),
    (asks(), offers(generic=False, owner="o", owner_group="g")),
    (asks(owner="p"), offers(generic=False, owner="o", owner_group="g", job_sharing=True)),
    (asks(sites=("A",)), offers(site="a")),
    (asks(grid_ces=("CE1",)), offers(grid_ce="ce1")),
    (asks(platforms=("Linux-X86_64",)), offers(platforms=("linux-x86_64",))),
    (asks(job_types=("mc",)), offers(job_types=("MC",))),
    (asks(tags=("gpu",)), offers(tags=("GPU",), required_tags=("Gpu",))),
    (asks(tags=("gpu", "avx")), offers(tags=("ANY",))),
    (asks(tags=("gpu",)), offers(tags=("Any",), required_tags=("ssd", "any"))),
    (asks(tags=("WholeNode", "MultiProcessor")), offers(tags=("wholenode",), processors=8)),
    (asks(min_disk_mb=2_000), offers(disk_mb=2_000)),
    (asks(min_disk_mb=2_000), offers()),
    (asks(max_ram_mb=9_000), offers(memory_mb=1)),
    (asks(certificate_subject="/CN=x", fqans=("/v",)), offers()),
    (asks(submit_pools=("p",), grid_middlewares=("m",)), offers()),
]
FAILING = [
    ("setup", asks(setup="t"), offers()),
    ("vo", asks(vo="w"), offers()),
    ("owner", asks(owner="p"), offers(generic=False, owner="o", owner_group="g")),
    ("owner", asks(owner_group="h"), offers(generic=False, owner="o", owner_group="g", job_sharing=True)),
    ("vo", asks(vo="w"), offers(generic=False, owner="o", owner_group="g")),
    ("pilot type", asks(pilot_types=("private",)), offers(pilot_type="generic")),
    ("site", asks(sites=("A",)), offers(site="B")),
    ("banned site", asks(banned_sites=("A",)), offers(site="A")),
    ("grid CE", asks(grid_ces=("x",)), offers(grid_ce="y")),
    ("platform", asks(platforms=("x",)), offers(platforms=("y", "z"))),
    ("job type", asks(job_types=("MC",)), offers(job_types=("User",))),
    ("banned job type", asks(job_types=("MC",)), offers(banned_job_types=("MC",))),
    ("tags", asks(tags=("gpu",)), offers()),
    ("tags", asks(tags=("gpu", "ssd")), offers(tags=("gpu",))),
    ("tags", asks(tags=processor_tags(4)), offers(processors=3)),
    ("required tags", asks(), offers(tags=("gpu",), required_tags=("gpu",))),
    ("memory", asks(min_ram_mb=2_000), offers(memory_mb=1_999)),
    ("memory", asks(min_ram_mb=1), offers()),
    ("banned site", asks(banned_sites=("A",)), offers(site="a")),
    ("banned job type", asks(job_types=("mc",)), offers(banned_job_types=("MC",))),
    ("tags", asks(tags=processor_tags(4)), offers(tags=("ANY",), processors=3)),
    ("tags", asks(tags=("WholeNode",)), offers(tags=("ANY",))),
    ("disk", asks(min_disk_mb=2_000), offers(disk_mb=1_999)),
    ("CPU time", asks(cpu_segment=1_001), offers(cpu_time=1_000)),
]


@pytest.mark.parametrize(("wanted", "offered"), FITTING)
def test_fits(wanted, offered):
    assert fits(wanted, offered) is None
    assert mismatches(wanted, offered) == []
    assert reference.fits(wanted, offered)


@pytest.mark.parametrize(("clause", "wanted", "offered"), FAILING)
def test_does_not_fit(clause, wanted, offered):
    mismatch = fits(wanted, offered)
    assert mismatch is not None
    assert mismatch.clause == clause
    assert mismatches(wanted, offered) == [mismatch]
    assert not reference.fits(wanted, offered)


@settings(max_examples=300, deadline=None)
@given(requirements(), resources())
def test_fits_as_the_reference(wanted, offered):
    mismatch = fits(wanted, offered)
    assert (mismatch is None) == reference.fits(wanted, offered)
    every = mismatches(wanted, offered)
    assert every[:1] == ([mismatch] if mismatch else [])
    assert len({m.clause for m in every}) == len(every)


def test_explain_names_every_failing_clause():
    wanted = asks(setup="t", sites=("A",), tags=("gpu", "ssd"), min_ram_mb=5, cpu_segment=10**6)
    failing = mismatches(wanted, offers(site="B"))
    assert [m.clause for m in failing] == ["setup", "site", "tags", "memory", "CPU time"]
    assert failing[2].detail == "the resource lacks gpu, ssd"


def test_words_are_bounded():
    sites = tuple(f"site{n}" for n in range(1_000))
    mismatch = fits(asks(sites=sites), offers(site="B"))
    assert mismatch is not None
    assert "and 995 more" in mismatch.detail
    assert len(mismatch.detail) < 200


def test_a_required_tag_the_resource_lacks_is_a_refusal():
    offered = offers(tags=("ssd",), required_tags=("gpu",))
    refused = refusal(offered)
    assert refused is not None
    assert "RequiredTag gpu" in refused.detail
    assert fits(asks(tags=("gpu",)), offered) == refused


@pytest.mark.parametrize(
    "fields",
    [
        {"processors": 0},
        {"processors": 10**9},
        {"cpu_time": -1},
        {"vo": ""},
        {"generic": False},
        {"generic": False, "owner_group": "g"},
    ],
)
def test_a_contradictory_description_is_refused(fields):
    assert fits(asks(), offers(**fields)) == refusal(offers(**fields)) != None  # noqa: E711 - chained on purpose


def test_negative_conditions_are_anded():
    def not_production(wanted, _):
        return Mismatch("running limit", "enough MC") if "MC" in wanted.job_types else None

    def not_group(wanted, _):
        return Mismatch("running limit", "enough of g") if wanted.owner_group == "g" else None

    both = (not_production, not_group)
    assert fits(asks(job_types=("MC",), owner_group="h"), offers(), both) is not None
    assert fits(asks(job_types=("User",)), offers(), both) is not None
    assert fits(asks(job_types=("User",), owner_group="h"), offers(), both) is None


def test_left_over_after_a_job_with_gpus():
    offered = offers(processors=8, node=(("a", 1), ("gpunumber", 3)))
    wanted = asks(requirements="other.GPUNumber >= 2")
    assert fits(wanted, offered) is None
    after = left_over(offered, wanted)
    assert after is not None
    assert after.node == (("a", 1), ("gpunumber", 1))
    assert fits(wanted, after) is not None


def test_left_over_after_a_job():
    offered = offers(processors=8, memory_mb=16_000)
    after = left_over(offered, asks(tags=processor_tags(6), min_ram_mb=10_000))
    assert after is not None
    assert (after.processors, after.memory_mb) == (2, 6_000)
    assert left_over(after, asks(tags=processor_tags(2))) is None
