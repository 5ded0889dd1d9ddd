"""Slurm's times, lists of tasks and numbers of GPUs."""

import pytest

from wms.jobdesc.languages.slurm_values import gpus, seconds, step_of, task_ids


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30", 1_800),
        ("30:00", 1_800),
        ("30:30", 1_860),
        ("1:30:00", 5_400),
        ("120:00:00", 432_000),
        ("1-12", 129_600),
        ("0-04:00", 14_400),
        ("01-00:00:30", 86_460),
        ("0-0:30:00", 1_800),
        ("UNLIMITED", 0),
        ("0", 0),
        ("1h", None),
        ("1-", None),
        ("", None),
    ],
)
def test_times(text: str, expected: int | None) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", (3,)),
        ("0-3", (0, 1, 2, 3)),
        ("7,1-9:4,2%3", (1, 2, 5, 7, 9)),
        ("1-3,2-4", (1, 2, 3, 4)),
        ("9-1", ()),
        ("1-3:0", ()),
        ("1-99999999", ()),
        ("a", ()),
        ("", ()),
    ],
)
def test_lists_of_tasks(text: str, expected: tuple[int, ...]) -> None:
    assert task_ids(text) == expected


def test_the_step_is_told_as_it_is_written() -> None:
    assert (step_of("0-15:4"), step_of("1,2")) == ("4", "1")


def test_gpus() -> None:
    assert [gpus(each, in_gres=True) for each in ("gpu", "gpu:2", "gpu:a100:1", "nvme:100", "")] == [
        1,
        2,
        None,
        None,
        0,
    ]
    assert [gpus(each) for each in ("2", "a100:2", "")] == [2, None, 0]
