"""Writes the pages that the code itself tells, or with `--check` says which of them are stale."""

import argparse
import sys
from pathlib import Path

from docs.pages import (
    bounds,
    configuration,
    descriptions,
    languages,
    messages,
    openapi,
    other_systems,
    performance,
    schema,
    states,
)
from docs.pages.channels import CHANNELS

FOLDER = Path(__file__).parent
MARK = "<!-- Written by `make docs` from the code; do not edit. -->\n"


def pages() -> dict[str, str]:
    """Return every generated file: its path below `docs/` and its text, the same for the same code."""
    marked = {
        "bounds.md": bounds.page(),
        "states.md": states.page(),
        "messages.md": messages.page(),
        "configuration.md": configuration.page(),
        "performance.md": performance.page(),
        "guide/descriptions.md": descriptions.page(),
        "guide/coming-from.md": other_systems.page(),
        **languages.pages(),
    }
    return {
        **{name: MARK + text for name, text in marked.items()},
        performance.PLOT: performance.scaling_plot(),
        "asyncapi.json": schema.asyncapi(),
        "openapi.json": openapi.page(),
        **{f"schema/{schema.file_name(each)}": schema.topic_schema(each) for each in CHANNELS},
    }


def stale(folder: Path) -> list[str]:
    """Return what is wrong with the generated files in a folder, one line each."""
    wanted = pages()
    lines = [_fault(folder / name, text) for name, text in wanted.items()]
    odd = {f"schema/{path.name}" for path in (folder / "schema").glob("*")} - wanted.keys()
    lines += [f"{folder.name}/{name}: nothing writes it any more" for name in sorted(odd)]
    return [line for line in lines if line]


def _fault(path: Path, text: str) -> str:
    shown = (
        f"{FOLDER.name}/{path.name}" if path.parent.name != "schema" else f"{FOLDER.name}/schema/{path.name}"
    )
    if not path.exists():
        return f"{shown}: is missing"
    return "" if path.read_text("utf-8") == text else f"{shown}: is stale"


def write(folder: Path) -> None:
    """Write every generated file, and remove schemas of topics that are no more."""
    wanted = pages()
    for path in (folder / "schema").glob("*"):
        if f"schema/{path.name}" not in wanted:
            path.unlink()
    for name, text in wanted.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def main(arguments: list[str] | None = None, folder: Path = FOLDER) -> int:
    """Write, or check; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m docs.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is stale")
    if not parser.parse_args(arguments).check:
        write(folder)
        return 0
    faults = stale(folder)
    for fault in faults:
        sys.stderr.write(f"{fault}: run `make docs` and commit what it writes\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
