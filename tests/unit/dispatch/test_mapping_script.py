"""What a site's mapping script is asked, and what of its answers gets to the batch system: no more than it may say."""

import json
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.dispatch.scripts import SCRATCH, SOFT, mapping, question
from wms.dispatch.mapping import ExtendedRequest, Kind
from wms.dispatch.mapping_script import (
    OPTIONS_LIMIT,
    WAITS,
    MappingScript,
    Outcome,
    ScriptAnswer,
    ScriptedMapping,
)
from wms.dispatch.port import Request
from wms.errors import Rejected
from wms.provisioning.host_requirements import HostTerm


def answered(kind: Kind, *options: str, base: Request | None = None) -> ExtendedRequest | str:
    """What becomes of requirements when a script gives these options for all; or why they are refused."""
    answers: dict[str, Outcome] = {}
    it = mapping(kind, answers)
    asked = question(it, base=base)
    printed = json.dumps({"options": options, "asked": [str(SCRATCH), str(SOFT)]})
    outcome = it.read(asked, printed.encode())
    if isinstance(outcome, str):
        return outcome
    answers[asked] = outcome
    return it.ask(base or Request(), (SCRATCH, SOFT))


def request(kind: Kind, *options: str, base: Request | None = None) -> Request:
    found = answered(kind, *options, base=base)
    assert isinstance(found, ExtendedRequest), found
    assert found.bounds == (SCRATCH, SOFT)
    return found.request


def test_a_script_is_asked_for_its_own_attributes_alone_and_is_told_what_rules_asked_for() -> None:
    memory = HostTerm("gluehostmainmemoryramsize", ">=", 8_000)
    asked = mapping().ask(Request(cores=2), [memory, SOFT, SCRATCH])
    assert asked.avoided == WAITS
    told = json.loads(asked.question)
    assert told["middleware"] == "slurm"
    assert told["request"] == {
        "cores": 2,
        "memory_mb": 8_000,
        "walltime_seconds": 0,
        "constraint": "",
        "gres": "",
        "attributes": {},
    }
    assert [each["text"] for each in told["requirements"]] == ["scratchmb >= 2000", 'soft has "avx512"']
    assert told["requirements"][0] == {
        "attribute": "scratchmb",
        "relation": ">=",
        "value": 2_000,
        "text": "scratchmb >= 2000",
    }
    assert mapping().ask(Request(cores=2), [SCRATCH, memory, SOFT]).question == asked.question


def test_what_rules_are_enough_for_asks_no_script() -> None:
    asked = mapping().ask(Request(), [HostTerm("gluehostmainmemoryramsize", ">=", 8_000)])
    assert (asked.question, asked.avoided, asked.request.memory_mb) == ("", "", 8_000)


@pytest.mark.parametrize(
    "value", ["a b", "$(id)", "a\nb", 'x"', "-x", "{}", "", "a;b", 1e300, float("inf"), 2**60]
)
def test_only_plain_words_and_numbers_reach_a_script(value: str | float) -> None:
    asked = mapping().ask(Request(), [HostTerm("soft", "==", value)])
    assert (asked.question, asked.avoided) == ("", "")
    assert [each.reason for each in asked.unasked] == ["its value is no plain word or number"]


def test_a_question_is_bounded() -> None:
    many = [HostTerm("soft", "member", f"x{number}") for number in range(1_000)]
    asked = mapping().ask(Request(), many)
    assert asked.question == ""
    assert "no question of over 16,384 characters" in asked.avoided


def test_what_a_script_is_for_is_about_hosts_and_has_no_rule() -> None:
    assert {"scratchmb", "soft"} <= mapping().forwarded
    with pytest.raises(Rejected, match="scratchmb has a rule"):
        mapping(ScratchMB="--tmp={value}")
    with pytest.raises(Rejected, match="a b"):
        ScriptedMapping("slurm", {}, MappingScript(attributes=("a b",), options=()), {})
    with pytest.raises(Rejected, match="x y"):
        ScriptedMapping("slurm", {}, MappingScript(attributes=("a",), options=("x y",)), {})


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("slurm", ["--tmp=2", "--constraint=avx512&ib"], Request(constraint="avx512&ib", attributes={"tmp": "2"})),
        ("slurm", ["--mem=4000M", "--time=90"], Request(memory_mb=4_000, walltime_seconds=5_400)),
        ("slurm", ["--gres=gpu:2,scratch:1"], Request(gres="gpu:2,scratch:1")),
        ("slurm", [], Request()),
        ("arc", ["(runtimeenvironment=APPS/X-1.2)", "(memory=500)"],
         Request(memory_mb=500, attributes={"runtimeenvironment": "APPS/X-1.2"})),
        ("htcondor", ['requirements=TARGET.Arch == "x86_64" || TARGET.Soft >= 2', "request_gpus=1"],
         Request(constraint='TARGET.Arch == "x86_64" || TARGET.Soft >= 2', attributes={"request_gpus": "1"})),
        ("pbs", ["-l nodes=1:avx512:big", "-l mem=500"], Request(constraint="avx512:big", memory_mb=500)),
        ("pbspro", ["-l select=1:avx512=true"], Request(constraint="avx512=true")),
        ("lsf", ['-R "select[avx512 && big>2]"', '-R "rusage[scratch=2]"'],
         Request(constraint="avx512 && big>2", gres="scratch=2")),
    ],
)  # fmt: skip
def test_a_scripts_options_are_asked_for_as_rules_would(
    kind: Kind, options: list[str], expected: Request
) -> None:
    assert request(kind, *options) == expected


def test_a_script_asks_for_no_less_than_before_and_says_what_it_asked_for() -> None:
    assert request("slurm", "--mem=100M", base=Request(memory_mb=500)).memory_mb == 500
    found = answered("slurm", "--tmp=2")
    assert isinstance(found, ExtendedRequest)
    assert found.asked == (
        "scratchmb >= 2000 as --tmp=2 by the site's script",
        'soft has "avx512" as --tmp=2 by the site\'s script',
    )


def test_what_a_script_does_not_ask_for_is_left_to_the_node() -> None:
    answers: dict[str, Outcome] = {}
    it = mapping(answers=answers)
    answers[question(it)] = ScriptAnswer(("--tmp=2",), (str(SCRATCH),))
    found = it.ask(Request(), (SCRATCH, SOFT))
    assert found.bounds == (SCRATCH,)
    assert [str(each) for each in found.unasked] == [
        'soft has "avx512": the site\'s mapping script asks for no host by it'
    ]


INJECTED: Sequence[tuple[Kind, str]] = [
    ("slurm", "--wrap=id"),
    ("slurm", "--uid=0"),
    ("slurm", "--constraint=a\n#SBATCH --wrap=id"),
    ("slurm", "--constraint=a --wrap=id"),
    ("slurm", "--constraint=a|b"),
    ("slurm", "--constraint=[a*2]"),
    ("slurm", "--constraint=$(id)"),
    ("slurm", "--constraint={value}"),
    ("slurm", "--constraint"),
    ("slurm", "--mem=lots"),
    ("slurm", "--mem=9999999999M"),
    ("slurm", "--constraint=\u2028b"),
    ("slurm", "--constraint=a\0b"),
    ("slurm", "--constraint=é"),
    ("slurm", "--tmp=2;id"),
    ("slurm", "--job-name=x"),
    ("slurm", ""),
    ("arc", "(memory=500)(executable=/bin/sh)"),
    ("arc", '(runtimeenvironment=x")(executable="y)'),
    ("arc", "(executable=/bin/sh)"),
    ("htcondor", "executable=/bin/sh"),
    ("htcondor", "requirements=true\nqueue 100"),
    ("htcondor", "requirements=true) || (true"),
    ("htcondor", "requirements=$ENV(HOME) == 1"),
    ("htcondor", "requirements=TARGET."),
    ("htcondor", "request_gpus=1\\"),
    ("pbs", "-l nodes=1:a+5:b"),
    ("pbs", "-l nodes=1:a,walltime=1"),
    ("pbs", "-W x=1"),
    ("pbspro", "-l select=1:a+100:b"),
    ("lsf", '-R "select[a] rusage[b=1]"'),
    ("lsf", '-R "select[a || true]"'),
    ("lsf", "-J x"),
    ("lsf", "Q=1"),
]


@pytest.mark.parametrize(("kind", "option"), INJECTED)
def test_an_option_that_a_script_may_not_give_is_refused_with_the_answer(kind: Kind, option: str) -> None:
    found = answered(kind, option)
    assert isinstance(found, str), found
    assert found.isprintable()


@given(text=st.text(max_size=30))
def test_of_any_text_only_plain_signs_get_into_an_option(text: str) -> None:
    found = answered("slurm", f"--constraint={text}")
    if isinstance(found, ExtendedRequest):
        assert found.request.constraint.isascii()
        assert set(found.request.constraint).isdisjoint(" |$`'\"\\;<>()[]{}*?!#\n")


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (b"", "prints no answer"),
        (b"garbage", "prints no answer"),
        (b"[]", "prints no answer"),
        (b'{"options": []}', "prints no answer"),
        (b'{"options": [], "asked": [], "more": 1}', "prints no answer"),
        (b'{"options": ["\xff"], "asked": []}', "prints no answer"),
        (b'{"options": "--tmp=2", "asked": []}', "prints no answer"),
        (json.dumps({"options": ["--tmp=1"] * (OPTIONS_LIMIT + 1), "asked": []}).encode(), "prints no answer"),
        (json.dumps({"options": ["--tmp=" + "1" * 200], "asked": []}).encode(), "prints no answer"),
        (b'{"options": [], "asked": ["other >= 1"]}', "answers what it was not asked: other >= 1"),
        (b'{"options": ["--tmp=1", "--tmp=x"], "asked": []}', "tmp=1 is asked for already"),
        (b'{"options": ["--uid=0"], "asked": []}', "uid is not among the script's options"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused_with_the_reason(printed: bytes, why: str) -> None:
    it = mapping()
    found = it.read(question(it), printed)
    assert isinstance(found, str)
    assert why in found
