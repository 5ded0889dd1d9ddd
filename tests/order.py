"""The order of tests where several workers run them: each begins with tests that wait, and ends with tests that compute.

pytest-xdist deals an equal number of tests to each worker, in their order, and whoever has none left takes the later half of
another's. In the order of the files one worker would begin with all that wait for servers, while the others compute; in the end
all would wait, and the processors with them.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Sequence
from typing import TypeVar

T = TypeVar("T")

COMPUTING = "tests/unit/"
"""Where the tests are that need nothing but a processor."""
SECONDS_A_TEST = 0.3
LONG = {
    "tests/services/job_agent/test_agent.py": 60.0,
    "tests/services/job_agent/test_node_clock.py": 25.0,
    "tests/services/job_agent/payload/test_limit_enforcement.py": 25.0,
    "tests/services/job_agent/payload/test_orphans.py": 20.0,
    "tests/system/test_cli.py": 20.0,
    "tests/system/demo/test_run.py": 15.0,
    "tests/system/test_pilots_over_https.py": 30.0,
    "tests/system/test_placed_jobs.py": 20.0,
    "tests/system/test_provisioning.py": 20.0,
    "tests/system/client/test_executor.py": 20.0,
}
"""The seconds of files whose tests take longer than others."""


def in_shares(
    tests: Sequence[T], workers: int, file_of: Callable[[T], str], together: Container[str] = ()
) -> list[T]:
    """Return the tests in the order in which xdist is to deal them to so many workers.

    The files `together` begin the first share: what they share is started once. The longest of the others come first, each
    dealt to who has the least to do, and the tests of a file stay side by side but for those that compute.
    """
    files: dict[str, list[T]] = defaultdict(list)
    for test in tests:
        files[file_of(test)].append(test)
    seconds = {file: LONG.get(file, SECONDS_A_TEST * len(of)) for file, of in files.items()}
    waiting = [file for file in files if not file.startswith(COMPUTING)]
    shares: list[list[T]] = [[] for _ in range(workers)]
    busy = [0.0] * workers
    for file in sorted(waiting, key=lambda each: (each not in together, -seconds[each])):
        share = 0 if file in together else busy.index(min(busy))
        shares[share] += files[file]
        busy[share] += seconds[file]
    computing = [test for file in files if file.startswith(COMPUTING) for test in files[file]]
    return _filled(shares, computing, len(tests))


def _filled(shares: list[list[T]], computing: list[T], total: int) -> list[T]:
    """Put as many of those that compute behind each share as make it one that xdist deals."""
    ordered: list[T] = []
    for n, share in enumerate(shares):
        room = max(0, (total - len(ordered)) // (len(shares) - n) - len(share))
        ordered += share + computing[:room]
        computing = computing[room:]
    return ordered + computing
