"""`python -m tests.figures [--shrink]`: the figures that the code is held to; the exit code says whether all hold.

A function is as long as its body from the first to the last line, without its docstring. A module has a test if one layer of
tests has one of its name. What fell short when the rules were made stands in two lists beside this file, which only shrink:
an entry that is mended has to leave its list, and `--shrink` takes it off.
"""

import argparse
import ast
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("wms", "services")
LAYERS = ("unit", "contract", "db", "services", "system", "hostile", "chaos", "testbed")
UNTESTED = Path("tests", "untested_modules.txt")
LONG = Path("tests", "long_files.txt")

MEDIAN_LINES, P90_LINES = 6, 16
"""How long the functions of the library and the services may be."""
FILE_LINES = 400
"""How long a file may be whose docstring does not say why it is longer than 400 lines."""
LEAST_TESTED = 0.7
"""Which share of the modules has a test of its name."""
TWICE = {
    "Client": "wms.client has it for asyncio, and wms.client.sync with the same methods for programs that block",
    "Share": "wms.glue.glue2 writes its classes under the names that GLUE 2.0 gives them; the other travels in a reply",
    "Config": "each service's config module has one, which its host and the generated pages find by this name",
}
"""Public class names that stand in several modules, and why."""

BRANCHES = (ast.If, ast.IfExp, ast.For, ast.While, ast.Try, ast.Match)


@dataclass(frozen=True)
class Module:
    """One file of Python, by its path below the root."""

    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """How many lines it has."""
        return len(self.text.splitlines())

    @property
    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Yield its functions, methods and what is defined within them."""
        return (
            node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        )

    @property
    def public_classes(self) -> list[str]:
        """The names of its classes that others may use."""
        classes = [node.name for node in self.tree.body if isinstance(node, ast.ClassDef)]
        return [name for name in classes if not name.startswith("_")]

    @property
    def is_to_be_tested(self) -> bool:
        """False of an `__init__` or `__main__` that only puts others together: none of its functions branches."""
        if not self.path.stem.startswith("__"):
            return True
        return any(isinstance(node, BRANCHES) for function in self.functions for node in ast.walk(function))

    @property
    def is_long(self) -> bool:
        """True if it is too long and its docstring does not say why."""
        return self.lines > FILE_LINES and f"{FILE_LINES} lines" not in (ast.get_docstring(self.tree) or "")


def modules(root: Path = ROOT) -> list[Module]:
    """Return the modules of the library and the services."""
    paths = [path for source in SOURCES for path in sorted((root / source).rglob("*.py"))]
    return [Module(path.relative_to(root), path.read_text("utf-8")) for path in paths]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines the body of a function has without its docstring."""
    body = function.body[ast.get_docstring(function) is not None :]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def places_of_test(module: Path) -> list[Path]:
    """Return where a test of a module's name may stand: in one layer or another."""
    package, name = module.parts[1:-1], f"test_{module.stem.strip('_')}.py"
    return [
        Path("tests", layer, *(package[1:] if package[:1] == (layer,) else package), name) for layer in LAYERS
    ]


def untested(found: Sequence[Module], root: Path = ROOT) -> set[str]:
    """Return the paths of the modules without a test of their name."""
    return {
        each.path.as_posix()
        for each in found
        if each.is_to_be_tested and not any((root / path).exists() for path in places_of_test(each.path))
    }


def defined_twice(found: Sequence[Module]) -> dict[str, list[str]]:
    """Return the public class names that stand in several modules, and in which."""
    places = defaultdict[str, list[str]](list)
    for each in found:
        for name in each.public_classes:
            places[name].append(each.path.as_posix())
    return {name: paths for name, paths in places.items() if len(paths) > 1}


@dataclass(frozen=True)
class Figures:
    """What was measured, and what of it falls short."""

    median_lines: float
    p90_lines: float
    tested: int
    to_be_tested: int
    twice: dict[str, list[str]]
    untested: set[str]
    long: set[str]

    def text(self) -> str:
        """Return the figures, one line each."""
        share = self.tested / self.to_be_tested
        return (
            f"lines of a function     median {self.median_lines:g} (at most {MEDIAN_LINES}), "
            f"p90 {self.p90_lines:g} (at most {P90_LINES})\n"
            f"class names twice       {len(self.twice)} (at most {len(TWICE)}): {', '.join(sorted(self.twice))}\n"
            f"modules with a test     {self.tested} of {self.to_be_tested}, {share:.1%} (at least {LEAST_TESTED:.0%})\n"
            f"files over {FILE_LINES} lines    {len(self.long)} that do not say why\n"
        )

    def faults(self, known_untested: set[str], known_long: set[str]) -> list[str]:
        """Return what is broken, one line each."""
        return [
            *self._numbers(),
            *(
                f"class {name} is defined twice: {', '.join(places)}"
                for name, places in sorted(self.twice.items())
                if name not in TWICE
            ),
            *(f"class {name} is no more defined twice" for name in sorted(TWICE.keys() - self.twice.keys())),
            *_differences("has no test of its name", UNTESTED, self.untested, known_untested),
            *_differences(f"has over {FILE_LINES} lines and does not say why", LONG, self.long, known_long),
        ]

    def _numbers(self) -> Iterator[str]:
        if self.median_lines > MEDIAN_LINES:
            yield f"the median function has {self.median_lines:g} lines, over {MEDIAN_LINES}"
        if self.p90_lines > P90_LINES:
            yield f"nine in ten functions have up to {self.p90_lines:g} lines, over {P90_LINES}"
        if self.tested < LEAST_TESTED * self.to_be_tested:
            yield f"only {self.tested} of {self.to_be_tested} modules have a test of their name"


def _differences(fault: str, listed_in: Path, there: set[str], listed: set[str]) -> Iterator[str]:
    yield from (f"{path}: {fault}" for path in sorted(there - listed))
    yield from (f"{path}: leaves {listed_in.as_posix()}, try --shrink" for path in sorted(listed - there))


def measured(root: Path = ROOT) -> Figures:
    """Measure the code below a root."""
    found = modules(root)
    lengths = [body_lines(function) for each in found for function in each.functions]
    without = untested(found, root)
    to_be_tested = sum(each.is_to_be_tested for each in found)
    return Figures(
        median_lines=statistics.median(lengths),
        p90_lines=statistics.quantiles(lengths, n=10)[-1],
        tested=to_be_tested - len(without),
        to_be_tested=to_be_tested,
        twice=defined_twice(found),
        untested=without,
        long={each.path.as_posix() for each in found if each.is_long},
    )


def listed(path: Path, root: Path = ROOT) -> set[str]:
    """Return the entries of a list."""
    return set((root / path).read_text("utf-8").split())


def shrink(figures: Figures, root: Path = ROOT) -> None:
    """Take off the lists what is mended; nothing is ever put on one."""
    for path, there in ((UNTESTED, figures.untested), (LONG, figures.long)):
        kept = sorted(listed(path, root) & there)
        (root / path).write_text("".join(f"{each}\n" for each in kept), "utf-8")


def main() -> int:
    """Print the figures and what is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.figures", description=__doc__)
    parser.add_argument("--shrink", action="store_true", help="take off the lists what is mended")
    figures = measured()
    if parser.parse_args().shrink:
        shrink(figures)
    faults = figures.faults(listed(UNTESTED), listed(LONG))
    sys.stdout.write(figures.text() + "".join(f"{fault}\n" for fault in faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
