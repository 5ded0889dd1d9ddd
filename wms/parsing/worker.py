"""The program of a parsing process: it reads tasks from its standard input, and writes an answer to each to its standard output.

`python -m wms.parsing.worker MEMORY_BYTES MODULE...` imports the modules first. MEMORY_BYTES is what a task may take beyond that.
"""

import gc
import importlib
import math
import os
import resource
import sys
from typing import Any, BinaryIO

import msgspec
import psutil

from wms.errors import Rejected
from wms.parsing.task import LENGTH, Parsed, ParserRefusal, ParserTask, frame

_decoder = msgspec.msgpack.Decoder(ParserTask)


def main() -> None:
    """Answer one task after the other until the input ends."""
    memory, modules = int(sys.argv[1]), sys.argv[2:]
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What a library prints must not come between the answers.
    for name in modules:
        importlib.import_module(name)
    gc.freeze()
    _confine(memory)
    with os.fdopen(0, "rb") as tasks, answers:
        while head := tasks.read(LENGTH.size):
            task = _decoder.decode(tasks.read(*LENGTH.unpack(head)))
            _write(answers, _answer(task, memory))
            del task


def _confine(memory: int) -> None:
    used = psutil.Process().memory_info().vms
    resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _answer(task: ParserTask, memory: int) -> Parsed | ParserRefusal:
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    used = resource.getrusage(resource.RUSAGE_SELF)
    ends = used.ru_utime + used.ru_stime + task.processor_seconds
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(ends), most))
    try:
        return Parsed(_function(task.function)(*task.arguments))
    except Rejected as fault:
        return ParserRefusal(fault.code, fault.message, fault.remedy, fault.details)
    except (MemoryError, RecursionError):
        return ParserRefusal(
            "TOO_EXPENSIVE",
            f"to read the document takes over {memory // 1024**2:,} MiB of memory",
            "send it in smaller parts",
            (),
        )
    finally:
        # What this task left of its last second must not be too little for the next sender's to be read.
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))


def _function(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _write(answers: BinaryIO, answer: Parsed | ParserRefusal) -> None:
    answers.write(frame(answer))
    answers.flush()


if __name__ == "__main__":
    main()
