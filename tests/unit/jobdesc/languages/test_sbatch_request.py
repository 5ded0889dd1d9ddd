"""What the options of a batch script ask for together."""

import pytest

from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.languages.sbatch_elements import LETTERS, NAMES, SAME
from wms.jobdesc.languages.sbatch_request import BatchRequest
from wms.jobdesc.languages.sbatch_text import parse


def request(options: str) -> BatchRequest:
    return BatchRequest(JobDraft(), parse(f"#!/bin/sh\n#SBATCH {options}\n", NAMES, LETTERS, SAME))


@pytest.mark.parametrize(
    ("options", "tasks", "processors", "gpus"),
    [
        ("-Q", 1, 1, 0),
        ("-n 4 -c 2", 4, 8, 0),
        ("--ntasks-per-node 8", 8, 8, 0),
        ("-n 2 --ntasks-per-node 8", 2, 2, 0),
        ("-G 4 --ntasks-per-gpu 2", 8, 8, 4),
        ("--gres=gpu:2 --cpus-per-gpu 3", 1, 6, 2),
        ("-n 3 --gpus-per-task 2", 3, 3, 6),
    ],
)
def test_tasks_processors_and_gpus(options: str, tasks: int, processors: int, gpus: int) -> None:
    found = request(options)
    assert (found.tasks, found.processors, found.gpus) == (tasks, processors, gpus)
    assert not found.draft.problems


@pytest.mark.parametrize("options", ["-n 16 --ntasks-per-node 8", "-c 0", "-n many", "-a x"])
def test_what_is_no_number_or_needs_several_nodes_is_a_problem(options: str) -> None:
    assert request(options).draft.problems
