"""Killed between commit, send and offset, a service loses nothing and does nothing twice once it is started again."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.services.runtime.counting import Counting
from wms import faultpoint
from wms.embedded.broker import Broker

NUMBERS = range(600)


@pytest.mark.parametrize("point", sorted(faultpoint.POINTS))
async def test_killed_at(point: str, tmp_path: Path, database: str) -> None:
    async with (
        Broker(tmp_path / "broker") as broker,
        Counting(tmp_path, database, broker, idempotent=False).open() as counting,
    ):
        await counting.tell(NUMBERS)
        doomed = await counting.start(WMS_FAULTPOINT=f"{point}:2")
        assert await doomed.wait() == -signal.SIGKILL
        assert await counting.effects() != list(NUMBERS)
        await counting.start()

        assert await counting.took_effect(NUMBERS) == list(NUMBERS)
        await counting.outbox_is_empty()
        assert set(await counting.passed_on()) == set(NUMBERS)


def test_every_point_is_reached_somewhere() -> None:
    root = Path(faultpoint.__file__).parent
    text = "".join(path.read_text("utf-8") for path in root.rglob("*.py"))
    assert all(f'faultpoint.reach("{point}")' in text for point in faultpoint.POINTS)
    assert text.count("faultpoint.reach(") == len(faultpoint.POINTS)


def run(statement: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", statement],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_point_that_is_not_is_named() -> None:
    result = run("import wms.faultpoint", WMS_FAULTPOINT="consumer.beforecommit")
    assert result.returncode == 1
    assert "no point is named 'consumer.beforecommit'" in result.stderr


def test_the_third_time_is_the_last() -> None:
    statement = (
        "from wms import faultpoint\n"
        "for n in range(5):\n"
        "    faultpoint.reach('relay.before_send'); print(n, flush=True); faultpoint.reach('relay.after_send')"
    )
    result = run(statement, WMS_FAULTPOINT="relay.after_send:3")
    assert result.returncode == -signal.SIGKILL
    assert result.stdout.split() == ["0", "1", "2"]
