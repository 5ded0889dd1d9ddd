"""What a site's mapping script is asked, and what of its answers gets to the batch system: no more than it may say."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, EndpointTerms
from services.pilot_submitter.host_requests import HostRequests
from services.pilot_submitter.script_answers import RETRY_SECONDS, ScriptAnswers, Version
from services.pilot_submitter.script_questions import WANTED_LIMIT, ScriptQuestions
from tests.unit.provisioning.test_pilot_class import asks, element
from wms.dispatch.forwarding import DoorTerms, Ways, forward
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.mapping import Asked, Kind
from wms.dispatch.mapping_script import (
    ANSWERS_TOLD,
    OPTIONS_LIMIT,
    WAITS,
    MappingScript,
    Outcome,
    ScriptAnswer,
    ScriptedMapping,
)
from wms.dispatch.port import Request
from wms.errors import Rejected, Unavailable
from wms.ids import CeId
from wms.provisioning.demand import Avoided
from wms.provisioning.host_requirements import HostTerm
from wms.provisioning.pilot_class import PilotClass
from wms.site import AdvertisedElement

NAMED: dict[Kind, tuple[str, ...]] = {
    "slurm": ("--constraint", "--gres", "--mem", "--time", "--tmp"),
    "arc": ("runtimeenvironment", "memory"),
    "htcondor": ("requirements", "request_gpus", "request_memory"),
    "pbs": ("-l nodes", "-l mem"),
    "pbspro": ("-l select",),
    "lsf": ("select", "rusage"),
}
SCRATCH, SOFT = HostTerm("scratchmb", ">=", 2_000), HostTerm("soft", "member", "avx512")


def mapping(kind: Kind = "slurm", answers: dict[str, Outcome] | None = None, **own: str) -> ScriptedMapping:
    script = MappingScript(attributes=("ScratchMB", "Soft"), options=NAMED[kind])
    return ScriptedMapping(kind, own, script, {} if answers is None else answers)


def question(it: ScriptedMapping, *bounds: HostTerm, base: Request | None = None) -> str:
    return it.ask(base or Request(), bounds or (SCRATCH, SOFT)).question


def answered(kind: Kind, *options: str, base: Request | None = None) -> Asked | str:
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
    assert isinstance(found, Asked), found
    assert found.bounds == (SCRATCH, SOFT)
    return found.request


# --- questions -----------------------------------------------------------------------------------------------------------


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


# --- answers -------------------------------------------------------------------------------------------------------------


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
    assert isinstance(found, Asked)
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
    if isinstance(found, Asked):
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


# --- the loop that asks --------------------------------------------------------------------------------------------------


class FakeScript:
    """Stands for a script in its sandbox, whose answers and failures a test sets."""

    name = "/site/map"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.says: bytes | Unavailable = b'{"options": ["--tmp=2"], "asked": ["scratchmb >= 2000"]}'
        self.changed = 0

    def version(self) -> Version:
        return self.changed

    async def run(self, question: str) -> bytes:
        self.asked.append(question)
        if isinstance(self.says, Unavailable):
            raise self.says
        return self.says


class Element:
    """A door to an element with a script, and what pilots ask for there."""

    def __init__(self) -> None:
        self.now = 0.0
        self.script = FakeScript()
        terms = DoorTerms(kind="slurm", script=MappingScript(attributes=("ScratchMB",), options=("--tmp",)))
        nothing = LocalDispatcher(Path("/nowhere"), (), {})
        clock = lambda: self.now  # noqa: E731 - a clock that the test sets
        self.answers = ScriptAnswers(self.script, clock)
        self.door = CeEndpoint(
            CeId("A", "ce"), nothing, clock, EndpointTerms(kind="slurm", asks=terms), self.answers
        )
        self.doors = CeEndpoints(nothing, clock, [self.door])
        self.asking = HostRequests(self.doors, clock)
        assert self.door.mapping is not None
        self.ad: AdvertisedElement = element(told={}, forwards=tuple(sorted(self.door.mapping.forwarded)))

    def hosts(
        self, requirements: str = "other.ScratchMB >= 2000", owner: str = "a"
    ) -> PilotClass | Avoided | None:
        return self.asking.hosts(asks(requirements, owner=owner), self.ad)

    def avoided(self, requirements: str = "other.ScratchMB >= 2000") -> str:
        found = self.hosts(requirements)
        assert isinstance(found, Avoided), found
        assert found.code == "BACKOFF"
        return found.why

    def told(self, requirements: str = "other.ScratchMB >= 2000") -> Any:
        """What they are told who explain, by what was written down."""
        return Ways({CeId("A", "ce"): self.door.asks_as_json()}).forward(asks(requirements), self.ad)


async def test_an_element_is_avoided_until_its_script_has_answered_and_other_work_goes_there() -> None:
    at = Element()
    assert at.avoided() == WAITS
    assert at.hosts("") is None
    assert isinstance(at.hosts("other.GlueHostMainMemoryRAMSize >= 8000"), PilotClass)
    assert at.told().avoided == WAITS
    assert not await at.doors.ask_scripts()
    found = at.hosts()
    assert isinstance(found, PilotClass)
    assert found.asked == ("scratchmb >= 2000 as --tmp=2 by the site's script",)
    assert found.sure
    assert at.told().hosts == found
    assert not at.told().avoided


async def test_a_question_is_asked_once_and_again_when_the_script_is_another() -> None:
    at = Element()
    for _ in range(3):
        at.hosts()
        await at.doors.ask_scripts()
    assert len(at.script.asked) == 1
    at.script.changed, at.script.says = 1, b'{"options": ["--tmp=7"], "asked": ["scratchmb >= 2000"]}'
    await at.doors.ask_scripts()
    assert at.avoided() == WAITS
    await at.doors.ask_scripts()
    found = at.hosts()
    assert isinstance(found, PilotClass)
    assert "--tmp=7" in str(found)


@pytest.mark.parametrize("says", [Unavailable("has not ended within 5 s"), b"garbage"])
async def test_a_failure_is_told_and_tried_again_after_a_while(says: bytes | Unavailable) -> None:
    at = Element()
    good, at.script.says = at.script.says, says
    at.hosts()
    await at.doors.ask_scripts()
    why = at.avoided()
    assert why.startswith(
        ("its mapping script has not ended within 5 s", "its mapping script prints no answer")
    )
    assert at.told().avoided == why
    assert isinstance(at.hosts("other.GlueHostMainMemoryRAMSize >= 8000"), PilotClass)
    await at.doors.ask_scripts()
    assert len(at.script.asked) == 1
    at.now, at.script.says = RETRY_SECONDS, good
    assert at.avoided() == why, "what is wanted anew is asked in the next round"
    await at.doors.ask_scripts()
    assert isinstance(at.hosts(), PilotClass)


async def test_however_many_questions_wait_few_are_remembered_and_all_are_answered() -> None:
    at = Element()
    many = [f"other.ScratchMB >= {2_000 + number}" for number in range(WANTED_LIMIT + 5)]
    at.script.says = b'{"options": ["--tmp=2"], "asked": []}'
    for each in many:
        at.hosts(each)
    while await at.doors.ask_scripts():
        pass
    assert len(at.script.asked) == WANTED_LIMIT
    assert [at.hosts(each) for each in many].count(Avoided("BACKOFF", WAITS)) == 5
    while await at.doors.ask_scripts():
        pass
    assert not any(isinstance(at.hosts(each), Avoided) for each in many)
    assert len(at.answers.latest()) == ANSWERS_TOLD
    assert not at.told(many[0]).avoided, "older answers are not written down, but pilots go there"


async def test_an_owner_with_very_many_questions_delays_anothers_by_one() -> None:
    at = Element()
    at.script.says = b'{"options": ["--tmp=2"], "asked": []}'
    for number in range(WANTED_LIMIT + 5):
        at.hosts(f"other.ScratchMB >= {2_000 + number}")
    theirs = ["other.ScratchMB >= 7", "other.ScratchMB >= 8"]
    for each in theirs:
        at.hosts(each, "b")
    await at.doors.ask_scripts()
    for each in theirs:
        assert isinstance(at.hosts(each, "b"), Avoided)
        await at.doors.ask_scripts()
        assert isinstance(at.hosts(each, "b"), PilotClass), "it is b's turn"
        await at.doors.ask_scripts()


async def test_a_question_of_two_owners_is_asked_once() -> None:
    at = Element()
    for owner in ("a", "b"):
        at.hosts(owner=owner)
    assert not await at.doors.ask_scripts()
    assert isinstance(at.hosts(owner="b"), PilotClass)
    assert len(at.script.asked) == 1


def test_owners_of_questions_take_turns_each_in_its_own_order() -> None:
    wanted = ScriptQuestions()
    for owner, question in [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1"), ("b", "b2")]:
        wanted.add(("vo", owner), question)
        wanted.add(("vo", owner), question)
    assert len(wanted) == 6
    assert [wanted.next() for _ in range(7)] == ["a1", "b1", "c1", "a2", "b2", "a3", None]
    assert len(wanted) == 0


def test_where_the_room_is_full_who_has_most_gives_up_the_newest() -> None:
    wanted = ScriptQuestions(limit=6)
    for owner, count in [("a", 9), ("b", 2), ("c", 9)]:
        for number in range(count):
            wanted.add(("vo", owner), f"{owner}{number}")
    assert len(wanted) == 6
    assert [wanted.next() for _ in range(6)] == ["a0", "b0", "c0", "a1", "b1", "c1"]
    for owner in "abcdefgh":
        wanted.add(("vo", owner), owner)
    assert len(wanted) == 6, "as many owners as there is room for"
    wanted.answered("a")
    wanted.add(("vo", "h"), "h")
    assert [wanted.next() for _ in range(7)] == [*"bcdefh", None]


def test_a_door_whose_script_nobody_asked_says_so() -> None:
    at = Element()
    assert at.door.mapping is not None
    found = forward(asks("other.ScratchMB >= 2000"), at.ad, Request(), at.door.mapping)
    assert found.avoided == WAITS
    assert found.hosts is None
