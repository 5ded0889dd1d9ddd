"""Every named block of SQL: prepared against the real schema, used exactly once, and quick where it is hot."""

import ast
from pathlib import Path

import asyncpg
import pytest

from wms.db.sql import Blocks

FOLDER = Path(__file__).parents[2] / "wms" / "db"
FILES = sorted(FOLDER.glob("*.sql"))


def blocks() -> list[tuple[str, str, str]]:
    return [(path.stem, name, text) for path in FILES for name, text in Blocks(path).items()]


@pytest.mark.parametrize(("noun", "name", "text"), blocks(), ids=lambda value: str(value)[:40])
async def test_block_prepares(connection: asyncpg.Connection, noun: str, name: str, text: str) -> None:
    await connection.prepare(text)


def test_every_file_has_blocks_and_a_module() -> None:
    for path in FILES:
        assert Blocks(path), path
        assert path.with_suffix(".py").exists(), path


def used_names(module: Path) -> list[str]:
    tree = ast.parse(module.read_text())
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "SQL":
            found += [c.value for c in ast.walk(node.slice) if isinstance(c, ast.Constant)]
    return [name for name in found if isinstance(name, str)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_block_is_used_exactly_once(path: Path) -> None:
    assert sorted(used_names(path.with_suffix(".py"))) == sorted(Blocks(path))


HOT = {
    ("job", "lock"): "job_pkey",
    ("job", "move"): "job_pkey",
    ("job", "claim"): "job_pkey",
    ("job", "leases"): "lease_pkey",
    ("attempt", "finish"): "attempt_pkey",
    ("offset", "advance"): "consumer_offset_pkey",
    ("selection", "of_ranges"): "job_pkey",
}


@pytest.mark.parametrize(("noun", "name"), HOT, ids=str)
async def test_hot_block_uses_its_index(connection: asyncpg.Connection, noun: str, name: str) -> None:
    text = Blocks(FOLDER / f"{noun}.sql")[name]
    await connection.execute("set enable_seqscan = off")
    await connection.execute(f"prepare hot as {text}")
    count = await connection.fetchval("select cardinality(parameter_types) from pg_prepared_statements where name = 'hot'")
    await connection.execute("set plan_cache_mode = force_generic_plan")
    plan = await connection.fetch(f"explain execute hot({', '.join(['null'] * count)})")
    assert HOT[noun, name] in "\n".join(row[0] for row in plan)
