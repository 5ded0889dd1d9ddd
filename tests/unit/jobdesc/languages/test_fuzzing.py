"""Readers of all languages take any document: they read it or refuse it, and neither fail nor hang."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.jobdesc.languages.jsdl.documents import document
from wms.errors import Rejected
from wms.jobdesc.languages import catalogue
from wms.jobdesc.languages.translation import Language

SEEDS = (
    b'{"executable": "x", "arguments": ["{n}"], "array": 3}',
    b'executable = "x"\n[preferences]\nobjective = "earliest-start"\n[[inputs]]\nname = "a"\nsources = ["http://x"]\n',
    b'&(executable=x)(arguments="a" "b")(inputfiles=("f" "http://x/f"))|(a>1)',
    b'[ Executable = "x"; Arguments = "a b"; InputSandbox = {"f"}; Requirements = other.A > 1; ]',
    b"executable = x\narguments = $(Process)\nqueue 3\n",
    b"#!/bin/sh -e\n#SBATCH -n 2 --array=1-9:2%3 --gres=gpu:1\n#SBATCH -o '%x_%a' --export=A=b\nls $SLURM_ARRAY_TASK_ID\n",
    b'<ActivityDescription xmlns="http://www.eu-emi.eu/es/2010/12/adl"><Application><Executable><Path>x</Path></Executable></Application></ActivityDescription>',
    document(
        "<p:Executable>x</p:Executable><p:Argument>a</p:Argument><p:WallTimeLimit>6</p:WallTimeLimit>",
        parts="<Resources><TotalCPUCount><Exact>2</Exact></TotalCPUCount></Resources>",
        beside="<s:Sweep><s:Assignment><s:Parameter>//p:Argument</s:Parameter><f:Loop start='1' end='9'/></s:Assignment></s:Sweep>",
    ),
)  # fmt: skip
EDIT = st.tuples(
    st.integers(0, 3_000),
    st.integers(0, 40),
    st.binary(max_size=12) | st.sampled_from([b"<", b"]]", b'"', b"9" * 50]),
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for place, length, new in draw(st.lists(EDIT, max_size=6)):
        at = place % (len(data) + 1)
        data[at : at + length] = new
    return bytes(data)


@pytest.mark.parametrize("language", catalogue.LANGUAGES, ids=lambda each: each.name)
@settings(max_examples=150, deadline=2_000)
@given(mutated() | st.binary(max_size=300))
def test_any_document_is_read_or_refused(language: Language, data: bytes) -> None:
    language.looks_like(data)
    with suppress(Rejected):
        found = language.read(data)
        assert found.descriptions or found.problems or not found.report.entries or found.report.losses
        found.jobs(lenient=True)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("language", catalogue.LANGUAGES, ids=lambda each: each.name)
@pytest.mark.parametrize(
    "data",
    [part * 200_000 for part in (b"(", b"[", b"{", b"<a>", b'"', b"'", b"&(a=", b"/*", b"\n", b"<!--", b"a=1\n", b"$(", b"\\")],
    ids=lambda data: repr(data[:4]),
)  # fmt: skip
def test_long_repetitions_do_not_hang(language: Language, data: bytes) -> None:
    language.looks_like(data)
    with suppress(Rejected):
        language.read(data).jobs(lenient=True)
