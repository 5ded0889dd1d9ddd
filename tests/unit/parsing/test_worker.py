"""The program of a parsing process, by its pipes."""

import subprocess
import sys

import msgspec

from tests.unit.parsing import documents
from wms.parsing.task import LENGTH, Parsed, ParserRefusal, ParserTask, frame


def test_tasks_are_answered_in_order_until_the_input_ends() -> None:
    tasks = [ParserTask(f"{documents.__name__}:{name}", [b""], 60.0) for name in ("printed", "refused")]
    ran = subprocess.run(
        [sys.executable, "-m", "wms.parsing.worker", str(2**28), documents.__name__],
        input=b"".join(map(frame, tasks)),
        capture_output=True,
        check=True,
    )
    told, answers = ran.stdout, []
    while told:
        (length,) = LENGTH.unpack(told[: LENGTH.size])
        raw, told = told[LENGTH.size : LENGTH.size + length], told[LENGTH.size + length :]
        answers.append(msgspec.msgpack.decode(raw, type=Parsed | ParserRefusal))
    assert answers == [
        Parsed([b"done"]),
        ParserRefusal("BAD", "is bad", "mend it", ("line 1", "line 2")),
    ]
    assert ran.stderr.decode().strip() == "a library says something"
