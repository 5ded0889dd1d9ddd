"""Documents of many jobs over defaults: every problem of each, and those of the defaults once."""

from tests.unit.jobdesc.problems import places
from wms.jobdesc import read

SHA = "0123456789abcdef" * 4


def test_many_jobs_over_defaults() -> None:
    text = """
        [defaults]
        executable = "./a"
        cpu_time = 600
        environment = { A = "1", B = "2" }
        [[job]]
        name = "first"
        [[job]]
        cpu_time = 60
        [job.environment]
        B = "3"
        [[job.input_sandbox]]
        sha256 = "%s"
        size = 5
    """
    first, second = read(text.replace("%s", SHA).encode())
    assert (first.name, first.cpu_time, first.environment) == ("first", 600, {"A": "1", "B": "2"})
    assert (second.cpu_time, second.environment) == (60, {"A": "1", "B": "3"})
    assert second.input_sandbox[0].size == 5


def test_every_problem_of_every_job_is_told() -> None:
    assert places(
        [{"cpu_tme": 3}, {"executable": "a"}, {"executable": 5, "arguments": ["a", 1, "b\0"]}, 7]
    ) == [
        "jobs[0].cpu_tme",
        "jobs[0].executable",
        "jobs[2].executable",
        "jobs[2].arguments[1]",
        "jobs[2].arguments[2]",
        "jobs[3]",
    ]


def test_wrong_defaults_are_told_once() -> None:
    assert places({"defaults": {"executable": "a", "cpu_time": -1}, "jobs": [{}] * 50}) == [
        "defaults.cpu_time"
    ]
