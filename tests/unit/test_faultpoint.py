"""Points at which a test has a process killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import services
from wms import faultpoint


def test_every_point_is_reached_somewhere() -> None:
    roots = [Path(faultpoint.__file__).parent, Path(services.__file__).parent]
    text = "".join(path.read_text("utf-8") for root in roots for path in root.rglob("*.py"))
    points = faultpoint.POINTS
    assert all(f'faultpoint.reach("{point}")' in text for point in points)
    assert text.count("faultpoint.reach(") == len(points)


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


def test_a_point_may_stop_the_process_instead() -> None:
    statement = "from wms import faultpoint; faultpoint.reach('relay.after_send')"
    environment = {**os.environ, "WMS_FAULTPOINT": "relay.after_send:1:stop"}
    with subprocess.Popen([sys.executable, "-c", statement], env=environment) as process:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        process.kill()
    assert os.WIFSTOPPED(status)
