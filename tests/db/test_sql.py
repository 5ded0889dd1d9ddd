"""Every named block of SQL: prepared against the real schema, used exactly once, and quick where it is hot."""

import ast
import re
from pathlib import Path

import asyncpg
import pytest

from wms.db.sql import Blocks

FOLDER = Path(__file__).parents[2] / "wms" / "db"
FILES = sorted(FOLDER.glob("*.sql"))


def blocks() -> list[tuple[str, str, str]]:
    return [(path.stem, name, text) for path in FILES for name, text in Blocks(path).items()]


async def test_every_block_prepares(database: str) -> None:
    """One test for all of them: each would else need a database of its own."""
    connection = await asyncpg.connect(database)
    refused = {}
    for noun, name, text in blocks():
        try:
            await connection.prepare(text)
        except asyncpg.PostgresError as error:
            refused[noun, name] = str(error)
    await connection.close()
    assert not refused


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


OFFERS_TOO = {
    ("pilot", "of_job"): "the pilots to which a job was ever given",
    ("retention", "forget_jobs"): "deletes them",
    ("retention", "forget_rows"): "deletes them",
    ("timeline", "of_ranges"): "asks when a job was first offered",
}
"""Blocks that read attempts and mean withdrawn offers, too, with the reason."""


def test_a_withdrawn_offer_counts_as_no_attempt() -> None:
    """Whatever reads attempts leaves offers out, or asks for what an offer cannot have: a start, an output, another outcome."""
    told = (
        "<> 'withdrawn'",
        "distinct from 'withdrawn'",
        "started_at is not null",
        "output_sha256 is not null",
    )
    reads = re.compile(r"\b(?:from|join) (?:ended_)?attempt\b(?! using)")
    found = {
        (noun, name)
        for noun, name, text in blocks()
        if reads.search(text) and not any(each in text for each in told) and "outcome in (" not in text
    }
    assert found == set(OFFERS_TOO)


HOT = {
    ("job", "lock"): "job_pkey",
    ("job", "lock_held"): "job_pkey",
    ("job", "move"): "job_pkey",
    ("claim", "claim"): "job_pkey",
    ("job", "leases"): "lease_pkey",
    ("attempt", "finish"): "lease_pkey",
    ("offset", "advance"): "consumer_offset_pkey",
    ("selection", "of_ranges"): "job_pkey",
    ("pilot", "standings"): "lease_by_pilot",
    ("pilot", "over"): "lease_by_pilot",
    ("pilot", "hurry_leases"): "lease_by_pilot",
    ("attempt", "of_pilots"): "lease_by_pilot",
    ("agreement", "list"): "agreement_by_age",
    ("agreement", "requested"): "agreement_requested",
}


async def test_hot_blocks_use_their_index(database: str) -> None:
    connection = await asyncpg.connect(database)
    await connection.execute("set enable_seqscan = off; set plan_cache_mode = force_generic_plan")
    plans = {}
    for noun, name in HOT:
        await connection.execute(f"prepare hot as {Blocks(FOLDER / f'{noun}.sql')[name]}")
        count = await connection.fetchval(
            "select cardinality(parameter_types) from pg_prepared_statements where name = 'hot'"
        )
        plan = await connection.fetch(f"explain execute hot({', '.join(['null'] * count)})")
        await connection.execute("deallocate hot")
        plans[noun, name] = "\n".join(row[0] for row in plan)
    await connection.close()
    assert {place: HOT[place] in plan for place, plan in plans.items()} == dict.fromkeys(HOT, True), plans
