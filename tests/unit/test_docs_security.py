"""The page on security claims nothing without a test: each statement names tests, and these are there and run."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
STATEMENT = re.compile(r"^(?:\* |\|(?! *-)).+(?:\n  .+)*", re.MULTILINE)
TEST = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")
HEADING = re.compile(r"\|.*\| Shown by \|")


def statements() -> list[str]:
    """Return the statements of the page: list items and rows of tables, without the headings of the tables."""
    return [each for each in STATEMENT.findall(PAGE) if not HEADING.match(each)]


@cache
def functions_of(path: str) -> dict[str, ast.AST]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {each.name: each for each in ast.walk(tree) if isinstance(each, kinds)}


def test_the_page_makes_statements() -> None:
    assert len(statements()) > 30


@pytest.mark.parametrize("statement", statements(), ids=lambda each: re.sub(r"\W+", " ", each)[:60])
def test_a_statement_names_tests_that_are_there(statement: str) -> None:
    named = TEST.findall(statement)
    assert named, f"no test: {statement}"
    for name, path in named:
        assert name in functions_of(path), f"{path} has no {name}"
        skipped = [
            each
            for each in getattr(functions_of(path)[name], "decorator_list", [])
            if "skip(" in ast.unparse(each)
        ]
        assert not skipped, f"{name} does not run"


def test_prose_makes_no_promise() -> None:
    """What stands outside of the statements introduces them: a few sentences, none of which says `never` or `cannot`."""
    prose = STATEMENT.sub("", PAGE.partition("## What is not protected")[0])
    assert not re.findall(r"\b(?:never|cannot|always|no one|nobody)\b", prose, re.IGNORECASE)
