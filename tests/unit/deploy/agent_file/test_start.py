"""The first lines of the agent's file are read by old Pythons, and say in one line what a node lacks."""

import ast
import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.agent_file import start
from deploy.agent_file.build import zipped
from deploy.agent_file.start import unfit

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
SOURCE = Path(start.__file__).read_text()


def test_a_python_of_long_ago_can_read_them() -> None:
    tree = ast.parse(SOURCE, feature_version=(3, 4))
    newer = (ast.AnnAssign, ast.JoinedStr, ast.AsyncFunctionDef, ast.NamedExpr, ast.Starred, ast.Nonlocal)
    assert not [node for node in ast.walk(tree) if isinstance(node, newer)]
    arguments = [each for node in ast.walk(tree) if isinstance(node, ast.arguments) for each in node.args]
    assert not [each for each in arguments if each.annotation]
    assert SOURCE.isascii()


@pytest.mark.parametrize(
    ("pythons", "machine", "glibc", "words"),
    [
        (["3.8"], "x86_64", [2, 17], f"it needs Python 3.8, and {sys.executable} is {HERE}"),
        ([HERE], "z80", [2, 17], "it needs Linux on z80"),
        ([HERE], platform.machine(), [99, 0], "it needs glibc 99.0 or later"),
        ([HERE], platform.machine(), [2, 17], ""),
    ],
)
def test_what_a_node_lacks_is_said(pythons: list[str], machine: str, glibc: list[int], words: str) -> None:
    assert unfit(pythons, machine, glibc).startswith(words)
    assert bool(unfit(pythons, machine, glibc)) is bool(words)


def test_a_node_that_cannot_run_the_file_ends_with_one_line_and_its_code(tmp_path: Path) -> None:
    facts = {"pythons": ["2.0"], "machine": "x86_64", "glibc": [2, 28], "digest": "d" * 64}
    file = tmp_path / "agent.pyz"
    file.write_bytes(zipped({"__main__.py": SOURCE.encode(), "facts.json": json.dumps(facts).encode()}))
    done = subprocess.run([sys.executable, "-I", file], capture_output=True, text=True, check=False)
    assert done.returncode == start.UNFIT
    assert done.stderr.splitlines() == [
        f"job_agent: this node cannot run the agent: it needs Python 2.0, and {sys.executable} is {HERE}"
    ]
