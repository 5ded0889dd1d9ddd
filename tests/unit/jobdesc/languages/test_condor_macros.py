"""Macros of submit files. HTCondor's own `Submit` is the judge of what they expand to."""

import importlib
import random

import pytest

from tests.unit.jobdesc.languages.condor_machine import MACHINE
from wms.jobdesc.expansion import Expansion
from wms.jobdesc.languages.condor_jobs import QueuedJobs
from wms.jobdesc.languages.condor_macros import DEPTH_LIMIT, MacroError, MacroExpansion, names_in
from wms.jobdesc.languages.condor_text import parse

KNOWN = {
    "x": "5",
    "f": "a/b/c.txt",
    "list": "p, q, r",
    "bare": "c.tar.gz",
    "sum": "$(x)+1",
    "up": "$(x) $(f)",
}
PIECES = (
    "$(x)", "$(X)", "$(nope)", "$(nope:d)", "$(nope:d:$(x))", "$(x:d)", "$(x:)", "$(up)", "$(DOLLAR)(x)", "$INT(x)",
    "$INT(x,%04d)", "$INT(sum)", "$INT(sum,%x)", "$INT(7)", "$REAL(x)", "$REAL(x,%.2f)", "$REAL(2.5,%g)", "$STRING(x)",
    "$STRING(x,%5s)", "$STRING(f)", "$EVAL(sum)", "$EVAL(1+2)", "$CHOICE(1,a,b,c)", "$CHOICE(0,list)", "$SUBSTR(f,2)",
    "$SUBSTR(f,0,1)", "$SUBSTR(f,-3)", "$SUBSTR(f,2,-3)", "$SUBSTR(f,-5,3)", "$F(f)", "$Fn(f)", "$Fx(f)", "$Fnx(f)",
    "$Fp(f)", "$Fd(f)", "$Fpn(f)", "$Fqnx(f)", "$Fbd(f)", "$Fbp(f)", "$Fbx(f)", "$Fq(f)", "$Fn(bare)", "$Fx(bare)",
    "$Fp(bare)", "$Fnx(nope)", "$BASENAME(f)", "$DIRNAME(f)", "$Fdn(f)", "$Fdnx(f)", "$Fdd(f)", "$RANDOM_INTEGER(3,3)",
    "$RANDOM_CHOICE(a)", "$UNKNOWN(x)", "$(x y)", "$", "$$", "(", ")", "a b", "$ENV(NOPE_X)", "$ENV(NOPE_X:dd)",
)  # fmt: skip


def ours(text: str) -> str:
    return MacroExpansion(KNOWN.get, MACHINE).expand(text)


def judged(text: str) -> str:
    htcondor2 = importlib.import_module("htcondor2")
    lines = [f"{name} = {value}" for name, value in KNOWN.items()]
    return str(
        htcondor2.Submit("\n".join(["executable = /bin/true", *lines, f"v = {text}", "queue"])).expand("v")
    )


@pytest.mark.parametrize("piece", PIECES)
def test_a_macro_expands_as_by_htcondor(piece: str) -> None:
    assert ours(f"<{piece}>") == judged(f"<{piece}>")


def test_texts_of_many_macros_expand_as_by_htcondor() -> None:
    rng = random.Random(28)
    for _ in range(200):
        text = "-".join(rng.choices(PIECES, k=4))
        assert ours(f"<{text}>") == judged(f"<{text}>"), text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$$(Arch)", "runs the job"),
        ("$INT(f)", "no whole number"),
        ("$INT(x,%s)", "no format"),
        ("$REAL(f)", "no number"),
        ("$CHOICE(9,a,b)", "no item 9"),
        ("$INT($(x))", "takes a name"),
        ("$RANDOM_INTEGER(3,1)", "no number to choose"),
        ("$Ff(f)", "path of the submit machine"),
    ],
)
def test_what_cannot_be_expanded_is_refused(text: str, said: str) -> None:
    with pytest.raises(MacroError, match=said):
        ours(text)


def test_macros_that_hold_each_other_are_refused() -> None:
    with pytest.raises(MacroError, match="hold each other"):
        MacroExpansion({"a": "$(b)", "b": "$(a)"}.get, None).expand("$(a)")
    with pytest.raises(MacroError, match="grow too large"):
        MacroExpansion({"a": "$(b)" * 99, "b": "$(c)" * 99, "c": "x" * 99}.get, None).expand("$(a)")


def test_the_environment_needs_a_machine() -> None:
    assert ours("$ENV(HOME)") == "/home/me"
    with pytest.raises(MacroError, match="depends on the machine"):
        MacroExpansion(lambda _: None, None).expand("$ENV(HOME)")


def test_names_are_found_wherever_they_stand() -> None:
    assert names_in("$(a:$(b)) $INT(c,%d) $RANDOM_CHOICE(d)") >= {"a", "b", "c", "d", "RANDOM_CHOICE"}


def test_the_jobs_of_a_statement_are_those_of_htcondor() -> None:
    """Values of single jobs: HTCondor's `Submit` gets the variables of each item, as condor_submit sets them."""
    htcondor2 = importlib.import_module("htcondor2")
    head = "executable = e\nw = $(x)_$(y)\nv = $(Process) $(Step) $(Row) $(ItemIndex) $INT(Process,%03d) $(w) $Fn(y)\n"
    queue = "2 x, y from (\n a, 1/2.t 3\n b 2\n $(w2), c\n)"
    document = f"{head}w2 = $(y)!\nqueue {queue}\n"
    [statement] = parse(document)
    jobs = QueuedJobs(statement, MACHINE, 0, Expansion())
    submit = htcondor2.Submit(document)
    rows = list(submit.itemdata())
    for job in range(jobs.count):
        row, step = divmod(job, 2)
        own = {"Process": job, "Step": step, "Row": row, "ItemIndex": row, **rows[row]}
        for name, each in own.items():
            submit[name] = str(each)
        assert jobs.value("$(v)", job) == submit.expand("v")


def test_brackets_in_defaults_nest_a_few_times_only() -> None:
    nested = "$(a:" * DEPTH_LIMIT + "x" + ")" * DEPTH_LIMIT
    assert MacroExpansion(lambda _: None, None).expand(nested) == "x"
    with pytest.raises(MacroError, match="within each other"):
        MacroExpansion(lambda _: None, None).expand(f"$(a:{nested})")


def test_a_value_may_make_a_macro_together_with_what_follows() -> None:
    told = {"a": "$(", "b": "1", "c": "$(b)-"}
    assert MacroExpansion(told.get, None).expand("<$(a)b)$(c)$(c)>$(dollar)") == "<11-1->$"
