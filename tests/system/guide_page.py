"""Pages of the user guide as programs: their examples in order, run by one shell, and the outputs that they show.

A block of `sh` or `python` is run; `not-run` after the language leaves it out. A block of `text` that follows shows what it prints:
`...` stands for any text within a line, and alone on a line for any lines.
"""

import os
import re
import signal
import subprocess
from pathlib import Path

import msgspec

_BLOCK = re.compile(r"^```(\w+)( not-run)?\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
SECONDS = 400


class Example(msgspec.Struct, frozen=True):
    """A block that is run, and what the page shows of its output."""

    language: str
    code: str
    shown: str
    line: int


def examples(page: str) -> list[Example]:
    """Return the examples of a page."""
    return [
        Example(found[1], found[3], found[4] or "", page[: found.start()].count("\n") + 1)
        for found in _BLOCK.finditer(page)
        if found[1] in ("sh", "python") and not found[2]
    ]


def script(found: list[Example], directory: Path) -> str:
    """Return the script that runs the examples, the output of each into a file; a failure of any command ends it."""
    lines = ["set -eo pipefail"]
    for n, each in enumerate(found):
        code = each.code if each.language == "sh" else f"python - <<'PYTHON_ENDS'\n{each.code}PYTHON_ENDS\n"
        lines.append(f"{{\n{code}}} > {directory}/{n}.out 2>&1 < /dev/null\n")
    return "\n".join(lines)


def run(page: Path, directory: Path, environment: dict[str, str]) -> list[str]:
    """Run the examples of a page; return what went otherwise than the page shows."""
    found = examples(page.read_text("utf-8"))
    outputs, work = directory / "outputs", directory / "work"
    outputs.mkdir()
    work.mkdir()
    shell = subprocess.Popen(
        ["bash", "-c", script(found, outputs)],
        cwd=work,
        env={**os.environ, **environment, "COLUMNS": "200"},
        start_new_session=True,
    )
    try:
        code = shell.wait(timeout=SECONDS)
    finally:
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    faults = []
    for n, each in enumerate(found):
        output = outputs / f"{n}.out"
        said = output.read_text("utf-8") if output.exists() else "(was not reached)"
        if not output.exists() or not is_shown(each.shown, said):
            faults.append(f"{page.name}, line {each.line}: printed\n{said}\nand the page shows\n{each.shown}")
    return faults or ([f"{page.name}: exit code {code}"] if code else [])


def is_shown(shown: str, said: str) -> bool:
    """Tell whether an output is what a page shows."""
    if not shown:
        return True
    parts = [
        "(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + " *\n"
        for line in shown.splitlines()
    ]
    text = said if said.endswith("\n") or not said else said + "\n"
    return re.fullmatch("".join(parts), text) is not None
