"""What hosts must have becomes words of a batch system, and nobody's text becomes more than one word of them."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wms.classad.expression import Expression
from wms.dispatch.mapping import BUILT_IN, WORD, ExtendedRequest, HostMapping, Kind
from wms.dispatch.port import Request
from wms.errors import Rejected
from wms.matching.node_facts import POLICIES
from wms.provisioning.host_requirements import HostTerm

KINDS: tuple[Kind, ...] = ("slurm", "arc", "htcondor", "pbs", "pbspro", "lsf")
SOFTWARE = "GlueHostApplicationSoftwareRunTimeEnvironment"
FEATURES = {SOFTWARE: "--constraint={value}"}


def ask(
    kind: Kind, *bounds: HostTerm, base: Request | None = None, own: Mapping[str, str] | None = None
) -> ExtendedRequest:
    return HostMapping(kind, own).ask(base or Request(), bounds)


def memory(number: float, relation: str = ">=") -> HostTerm:
    return HostTerm("gluehostmainmemoryramsize", relation, number)  # type: ignore[arg-type] # one of them


def software(word: str) -> HostTerm:
    return HostTerm(SOFTWARE.lower(), "member", word)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_asked_for_everywhere_and_never_less_than_before(kind: Kind) -> None:
    assert ask(kind, memory(200)).request.memory_mb == 200
    assert ask(kind, memory(200, ">")).request.memory_mb == 201
    assert ask(kind, memory(199.2)).request.memory_mb == 200
    assert ask(kind, memory(200), base=Request(memory_mb=500)).request.memory_mb == 500


def test_slurm_is_asked_by_constraints_that_the_site_names() -> None:
    asked = ask(
        "slurm", software("avx512"), software("scratch"), base=Request(constraint="intel"), own=FEATURES
    )
    assert asked.request.constraint == "intel&avx512&scratch"
    assert 'gluehostapplicationsoftwareruntimeenvironment has "avx512" as --constraint=avx512' in asked.asked
    assert [each.reason for each in ask("slurm", software("avx512")).unasked] == [
        "this element has no rule for it"
    ]


def test_slurm_is_asked_for_gpus_processors_and_time() -> None:
    wanted = (
        HostTerm("gpunumber", ">=", 2),
        HostTerm("gluehostarchitecturesmpsize", ">", 3),
        HostTerm("numberofprocessors", ">=", 4),
        HostTerm("gluecepolicymaxwallclocktime", ">=", 90),
    )
    request = ask("slurm", *wanted, base=Request(walltime_seconds=3600)).request
    assert request == Request(cores=4, walltime_seconds=5400, gres="gpu:2", attributes={"mincpus": "4"})


def test_arc_is_asked_by_relations() -> None:
    asked = ask("arc", software("APPS/HEP/ATLAS-1.2"), own={"GlueHostBenchmarkSI00": "(benchmark={value})"})
    assert asked.request.attributes == {"runtimeenvironment": "APPS/HEP/ATLAS-1.2"}
    two = ask("arc", software("A"), software("B"))
    assert two.request.attributes == {"runtimeenvironment": "A"}
    assert [each.reason for each in two.unasked] == ["runtimeenvironment=A is asked for already"]


def test_htcondor_is_asked_by_an_expression() -> None:
    wanted = (
        HostTerm("gluehostarchitectureplatformtype", "==", "x86_64"),
        HostTerm("gluehostarchitecturesmpsize", ">=", 8),
    )
    constraint = ask("htcondor", *wanted, base=Request(constraint="HasSingularity")).request.constraint
    assert constraint == '((HasSingularity) && (TARGET.Arch == "x86_64")) && (TARGET.TotalCpus >= 8)'
    assert Expression.parse(constraint)


@pytest.mark.parametrize(
    ("kind", "rule", "base", "constraint", "said"),
    [
        ("pbs", "-l nodes=1:{value}", "ib", "ib:avx512:big", "-l nodes=1:avx512"),
        ("pbspro", "-l select=1:{value}=true", "", "avx512=true:big=true", "-l select=1:avx512=true"),
        ("lsf", '-R "select[{value}]"', "type==any", "type==any && avx512 && big", '-R "select[avx512]"'),
    ],
)
def test_subsets_of_nodes_are_asked_for_as_pbs_and_lsf_are_used_to(
    kind: Kind, rule: str, base: str, constraint: str, said: str
) -> None:
    asked = ask(
        kind, software("avx512"), software("big"), base=Request(constraint=base), own={SOFTWARE: rule}
    )
    assert asked.request.constraint == constraint
    assert asked.asked[0].endswith(f' has "avx512" as {said}')


def test_of_numbers_of_a_pbs_node_the_larger_counts_and_of_lsfs_resources_none_is_said_twice() -> None:
    gpus = HostTerm("gpunumber", ">=", 2)
    assert ask("pbs", gpus, base=Request(constraint="gpus=1:ib")).request.constraint == "gpus=2:ib"
    own = {"Scratch": '-R "rusage[scratch={value}]"'}
    asked = ask("lsf", HostTerm("scratch", ">=", 5), gpus, own=own)
    assert (asked.request.gres, asked.request.attributes) == ("scratch=5", {"gpu": "num=2"})
    twice = ask("lsf", HostTerm("scratch", ">=", 5), base=Request(gres="scratch=3"), own=own)
    assert [each.reason for each in twice.unasked] == ["scratch=3 is asked for already"]


def test_sites_add_and_replace_rules_and_say_the_units() -> None:
    own = {
        "GlueHostMainMemoryRAMSize": "--mem={value*2}M",
        "ScratchMB": "--tmp={value/1024}",
        "GlueHostBenchmarkSI00 <=": "--constraint=slow",
        "GlueHostNetworkAdapterOutboundIP": "--constraint=outbound",
    }
    wanted = (
        memory(100),
        HostTerm("scratchmb", ">=", 1025),
        HostTerm("gluehostbenchmarksi00", "<", 400),
        HostTerm("gluehostnetworkadapteroutboundip", "==", value=True),
    )
    request = ask("slurm", *wanted, own=own).request
    assert request == Request(memory_mb=200, constraint="slow&outbound", attributes={"tmp": "2"})


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        (memory(300, "<="), "this element has no rule for it"),
        (HostTerm("gluehostmainmemoryramsize", "==", value=False), "this element has no rule for it"),
        (HostTerm("gluehostmainmemoryramsize", "==", "much"), "its value is no number"),
        (memory(1e30), "its value is beyond all bounds"),
        (memory(-1), "its value is beyond all bounds"),
    ],
)
def test_what_cannot_be_asked_for_is_told_and_changes_nothing(bound: HostTerm, reason: str) -> None:
    asked = ask("slurm", bound)
    assert asked.request == Request()
    assert [each.reason for each in asked.unasked] == [reason]


def test_a_sites_own_alternatives_are_not_mixed_with_a_jobs_words() -> None:
    asked = ask("slurm", software("avx512"), base=Request(constraint="intel|amd"), own=FEATURES)
    assert asked.request.constraint == "intel|amd"
    assert "has no place for another" in asked.unasked[0].reason


HOSTILE = [
    "", "-x", "--wrap=id", "a b", "a&b", "a|b", "[a*2]", "a,b", "a:2", "a;id", "$(id)", "`id`", "a\nqueue", 'a")(executable="x', "a'b",
    "$ENV(HOME)", "$(Cluster)", "a\\", "a\0b", "é", "a" * 101, "../..", "(a)", "{value}", "%s", "a=b", "a#b", "a\u2028b",
]  # fmt: skip


SOFT: dict[Kind, str] = {
    "htcondor": "requirements=TARGET.Soft == {value}",
    "pbs": "-l nodes=1:{value}",
    "pbspro": "-l select=1:soft={value}",
    "lsf": "-R select[{value}]",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_values_get_nowhere(kind: Kind, text: str) -> None:
    own = {
        "Soft": SOFT.get(kind, "--constraint={value}"),
        "More": "other={value}",
    }
    asked = HostMapping(kind, own).ask(
        Request(), [HostTerm("soft", "member", text), HostTerm("more", "==", text)]
    )
    if kind == "htcondor" and text == "a b":
        assert asked.request.constraint == 'TARGET.Soft == "a b"'
    else:
        assert asked.request == Request()


@pytest.mark.parametrize(("kind", "rule"), [("pbs", "-l nodes=1:{value}"), ("pbspro", "-l select=1:{value}")])
def test_a_word_begins_no_other_node_of_pbs(kind: Kind, rule: str) -> None:
    asked = ask(kind, software("a+b"), own={SOFTWARE: rule})
    assert asked.request == Request()
    assert [each.reason for each in asked.unasked] == ["+ would begin another node"]


@settings(deadline=None)
@given(text=st.text(max_size=20))
def test_what_of_any_text_is_passed_on_is_one_word(text: str) -> None:
    request = ask("slurm", software(text), own=FEATURES).request
    assert request.constraint in ("", text)
    assert not request.constraint or WORD.fullmatch(request.constraint)


@settings(deadline=None)
@given(value=st.floats() | st.integers())
def test_what_of_any_number_is_passed_on_is_a_whole_number_in_bounds(value: float) -> None:
    asked = ask("slurm", HostTerm("gpunumber", ">=", value), memory(value))
    assert asked.request.memory_mb in range(2**31)
    assert asked.request.gres == "" or asked.request.gres.removeprefix("gpu:").isdecimal()


@pytest.mark.parametrize(
    ("key", "rule"),
    [
        ("Glue Host", "--mem={value}"),
        ("A ~", "--mem={value}"),
        ("A", "{value}"),
        ("A", "--mem"),
        ("A", "--x={value}{value}"),
        ("A", "--x={value.__class__}"),
        ("A", "--x={0}"),
        ("A", "--x={value*0}"),
        ("A", "--x=a\nb"),
        ("A", "--mem=lots"),
        ("A", "--time={value}:00"),
    ],
)
def test_a_rule_that_is_none_is_refused_with_its_name(key: str, rule: str) -> None:
    with pytest.raises(Rejected, match=key.split(maxsplit=1)[0]):
        HostMapping("slurm", {key: rule})


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_forwarded_is_about_hosts_or_named_by_the_site(kind: Kind) -> None:
    assert "gluehostmainmemoryramsize" in HostMapping(kind).forwarded
    assert "gluecepolicymaxcputime" not in HostMapping(kind).forwarded
    assert {name.lower() for name in BUILT_IN[kind]} - HostMapping(kind).forwarded == POLICIES
    own = HostMapping(kind, {"GlueCEPolicyMaxCPUTime": "walltime_seconds={value*60}", "Tags": "x={value}"})
    assert {"gluecepolicymaxcputime", "tags"} <= own.forwarded
    assert BUILT_IN[kind]
