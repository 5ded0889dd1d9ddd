"""What an element forwards of a job's requirements to its batch system."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.unit.provisioning.hosts import ASKS, PICKY, SOFTWARE, asking, asks, element, hosts, sent
from wms.dispatch.forwarding import HostRequestTerms, forward
from wms.dispatch.port import Request
from wms.matching.clauses import fits
from wms.site import as_it_is

USUAL = Request(memory_mb=100, constraint="intel")


def test_what_the_ad_decides_is_folded_away_and_the_host_is_asked_for_and_known_then() -> None:
    it, endpoint = asking()
    found = hosts(it, PICKY)
    assert found.asked == ("gluehostmainmemoryramsize >= 8000 as --mem=8000M",)
    assert found.node == (("gluehostmainmemoryramsize", 8_000),)
    assert found.sure
    assert not found.unasked
    assert it.request(sent(found), endpoint, element()) == replace(USUAL, memory_mb=8_000)
    assert it.request(sent(None), endpoint, element()) == USUAL
    assert forward(asks(PICKY), element(), USUAL, ASKS.mapping()).decided == (
        "other.gluecepolicymaxcputime > 60",
    )


@pytest.mark.parametrize(
    ("requirements", "node"),
    [
        (f'member("sse4", other.{SOFTWARE})', ((SOFTWARE.lower(), ("avx512", "sse4")),)),
        ("other.GlueHostBenchmarkSI00 > 500", (("gluehostbenchmarksi00", 501),)),
        ("other.GlueHostBenchmarkSI00 > 500.0", (("gluehostbenchmarksi00", 500.00000000000006),)),
        ("other.GlueHostBenchmarkSI00 > 300 && other.GlueHostMainMemoryRAMSize == 4000", ()),
    ],
)
def test_what_was_asked_for_stands_for_what_the_node_has(requirements: str, node: Any) -> None:
    it, _ = asking()
    found = hosts(it, requirements)
    assert found.node == node
    assert found.sure


SI00, LIMIT = "GlueHostBenchmarkSI00", "GlueCEPolicyMaxCPUTime"


@pytest.mark.parametrize(
    ("told", "rules", "option", "node"),
    [
        ({LIMIT: 1_500}, {SI00: "--constraint=fast"}, "--constraint=fast", ((SI00.lower(), 501),)),
        ({SI00: 501}, {LIMIT: "walltime_seconds={value*60}"}, "--time=1001", ((LIMIT.lower(), 1_001),)),
        ({SI00: 400}, {LIMIT: "walltime_seconds={value*60}"}, "--time=2001", ((LIMIT.lower(), 2_001),)),
    ],
)
def test_the_references_nested_example_works_both_ways(
    told: dict[str, Any], rules: dict[str, str], option: str, node: Any
) -> None:
    wanted = f"other.{SI00} > 500 ? other.{LIMIT} > 1000 : other.{LIMIT} > 2000"
    terms = HostRequestTerms(kind="slurm", rules=rules)
    at = element(told=told, forwards=tuple(sorted(terms.mapping().forwarded)))
    found = forward(asks(wanted), at, terms.usual(at), terms.mapping()).hosts
    assert found is not None
    assert found.asked[0].endswith(f" as {option}")
    assert found.node == node
    assert found.sure
    assert fits(asks(wanted), as_it_is(at.pilot_resource(vo="v"), found.node)) is None


@pytest.mark.parametrize("value", ["1.7976931348623157e308", "9223372036854775807", f'"{"x" * 300}"'])
def test_a_value_that_no_pilot_could_tell_is_not_known_of_its_node(value: str) -> None:
    it, _ = asking()
    relation = "==" if value.startswith('"') else ">"
    found = hosts(it, f"other.GlueHostBenchmarkSI00 {relation} {value}")
    assert found.asked
    assert not found.node
    assert not found.sure


def test_what_cannot_be_asked_for_is_said_and_left_to_the_node() -> None:
    it, endpoint = asking()
    found = hosts(it, "other.GlueHostMainMemoryRAMSize != 5")
    assert it.request(sent(found), endpoint, element()) == USUAL
    assert "looked at on the node: other.gluehostmainmemoryramsize != 5: != says what a host is not" in str(
        found
    )
    assert found.sure, "the ad says so, and the node is looked at all the same"
