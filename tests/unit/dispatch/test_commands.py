"""Tools of batch systems are run within bounds, and leave nothing behind when they pass them."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvloop

from tests.waiting import eventually
from wms.dispatch.commands import Tools
from wms.errors import Unavailable


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


async def test_what_a_tool_prints_is_returned_and_its_environment_is_ours(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLURM_JWT", "a token that every tool of Slurm would use without a word")
    said = await Tools({"SLURM_CONF": "x"}).ask(*python("import os; print(sorted(os.environ))"))
    assert "SLURM_CONF" in said.out
    assert "SLURM_JWT" not in said.out


async def test_a_tool_reads_its_input_while_it_prints():
    text = "x" * 1_000_000
    said = await Tools({}).ask(*python("import sys; [print(line) for line in sys.stdin]"), text=text)
    assert said.out.strip() == text


async def test_a_tool_that_does_not_read_its_input_is_not_waited_for():
    assert (await Tools({}).ask(*python("print('done')"), text="x" * 1_000_000)).out == "done\n"


async def test_a_tool_that_fails_is_unavailable_and_its_complaint_is_told():
    with pytest.raises(Unavailable, match="no such cluster"):
        await Tools({}).ask(*python("import sys; sys.exit('no such cluster')"))


async def test_a_tool_that_is_not_there_is_unavailable():
    with pytest.raises(Unavailable, match="No such file"):
        await Tools({}).run("/nowhere/sinfo")


@pytest.mark.parametrize(
    ("then", "bounds", "complaint"),
    [
        ("time.sleep(600)", {"seconds": 2.0}, "not ended within 2 s"),
        ("[print('x' * 1000) for _ in range(10**9)]", {"limit": 100_000}, "printed over 100,000 bytes"),
        (
            "[print('x' * 1000, file=sys.stderr) for _ in range(10**9)]",
            {"seconds": 2.0},
            "not ended within 2 s",
        ),
    ],
)
async def test_a_tool_that_passes_a_bound_is_killed(
    tmp_path: Path, then: str, bounds: dict[str, Any], complaint: str
):
    mark = tmp_path / "pid"
    program = f"import os, sys, time; open({str(mark)!r}, 'w').write(str(os.getpid())); {then}"
    with pytest.raises(Unavailable, match=complaint):
        await Tools({}, **bounds).run(*python(program))
    pid = int(mark.read_text())
    assert pid != os.getpid()
    await eventually(lambda: not psutil.pid_exists(pid))


def test_tools_that_end_before_they_are_written_to_are_no_fault_of_ours() -> None:
    """As services run it: uvloop takes it for a fault if a pipe is written to whose reader is gone."""

    async def many() -> list[int]:
        tools, given = Tools({"PATH": os.environ["PATH"]}, at_once=8), "x" * 100_000
        said = await asyncio.gather(*(tools.run("true", text=given) for _ in range(50)))
        return [each.code for each in said]

    assert uvloop.run(many()) == [0] * 50
