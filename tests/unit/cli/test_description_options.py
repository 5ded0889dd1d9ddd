"""Every field of a job description has an option of `wms submit`, and those that may change one of `wms edit`."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from wms.cli.__main__ import run
from wms.cli.edit_options import EditOptions
from wms.jobdesc.changes import CHANGEABLE
from wms.jobdesc.validation import RULES

OPTIONS: dict[str, tuple[tuple[str, ...], Any]] = {
    "name": (("--name", "x"), "x"),
    "job_group": (("--group", "x"), "x"),
    "environment": (("--env", "A=1"), {"A": "1"}),
    "cpu_time": (("--cpu-time", "10m"), 600),
    "wall_time": (("--wall-time", "10m"), 600),
    "grace_time": (("--grace-time", "2m"), 120),
    "memory_mb": (("--memory", "2G"), 2048),
    "max_memory_mb": (("--max-memory", "2G"), 2048),
    "disk_mb": (("--disk", "2G"), 2048),
    "processors": (("--processors", "2"), 2),
    "min_processors": (("--min-processors", "2"), 2),
    "max_processors": (("--min-processors", "2", "--max-processors", "4"), 4),
    "gpus": (("--gpus", "2"), 2),
    "whole_node": (("--whole-node",), True),
    "sites": (("--site", "A"), ["A"]),
    "banned_sites": (("--banned-site", "A"), ["A"]),
    "grid_ces": (("--ce", "A"), ["A"]),
    "stations": (("--station", "A"), ["A"]),
    "grid_middlewares": (("--grid-middleware", "SLURM"), ["SLURM"]),
    "platforms": (("--platform", "A"), ["A"]),
    "tags": (("--tag", "A"), ["A"]),
    "container": (("--container", "docker://a/b:1"), "docker://a/b:1"),
    "network": (("--container", "a", "--network", "none"), "none"),
    "job_type": (("--job-type", "A"), "A"),
    "pilot_types": (("--pilot-type", "private"), ["private"]),
    "submit_pools": (("--submit-pool", "A"), ["A"]),
    "setup": (("--setup", "A"), "A"),
    "requirements": (("--requirements", "other.x > 1"), "other.x > 1"),
    "rank": (("--rank", "other.x"), "other.x"),
    "attributes": (("--attribute", "a=1"), {"a": 1}),
    "after": (("--after", "7,9-12", "--after", "20"), ["7,9-12", "20"]),
    "after_any": (("--after-any", "7"), ["7"]),
    "input_from": (("--input-from", "7"), ["7"]),
    "priority": (("--priority", "2"), 2),
    "max_attempts": (("--max-attempts", "2"), 2),
    "retries": (("--retries", "2"), 2),
    "final_exit_codes": (("--final-exit-code", "3"), [3]),
    "output_sandbox": (("--output", "*.x"), ["*.x"]),
    "stdout_limit": (("--stdout-limit", "4K"), 4096),
    "stderr_limit": (("--stderr-limit", "4K"), 4096),
    "success_exit_codes": (("--success-exit-code", "3"), [3]),
    "array": (("--array", "3"), 3),
    "parameters": (("--series", "a=start=10,step=5,factor=2,count=3"), {"a": ["10", "25", "55"]}),
}
BY_WORDS = {"executable", "arguments"}
BY_INPUT = {"input_sandbox", "input_parameters"}
BY_DOCUMENT = {
    "inputs", "outputs", "stdin", "stdout", "stderr", "preferences", "index_servers", "dispatch", "coallocate",
}  # fmt: skip
"""What is said in a description's document alone."""
IN_FILES_ALONE = {
    "attributes",
    "final_exit_codes",
    "grace_time",
    "success_exit_codes",
    "submit_pools",
    "whole_node",
}
"""What `wms edit` cannot say, and `edit` of the Python client can."""


def test_every_field_has_an_option() -> None:
    assert OPTIONS.keys() | BY_WORDS | BY_INPUT | BY_DOCUMENT == RULES.keys()


@pytest.mark.parametrize("field", OPTIONS)
def test_an_option_sets_its_field(capsys: pytest.CaptureFixture[str], tmp_path: Path, field: str) -> None:
    words, value = OPTIONS[field]
    assert run(["submit", "--data", str(tmp_path), "--dry-run", "--json", *words, "--", "true"]) == 0
    (description,) = msgspec.json.decode(capsys.readouterr().out)["descriptions"]
    assert description[field] == value


@pytest.mark.parametrize(
    "words",
    [
        ("--series", "a=1"),
        ("--series", "a=start=1"),
        ("--series", "a=count=0"),
        ("--series", "a=count=1000001"),
        ("--series", "a=step=x,count=2"),
        ("--series", "a=stop=1,count=2"),
        ("--series", "a=factor=10,start=1,count=100"),
        ("--series", "a=count=2", "--param", "a=1,2"),
        ("--series", "a=count=3", "--array", "2"),
    ],
)
def test_a_series_that_makes_no_list_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert run(["submit", "--data", str(tmp_path), "--dry-run", *words, "--", "true"]) == 2
    assert "a" in capsys.readouterr().err


def test_what_may_change_can_be_said() -> None:
    said = EditOptions(
        cpu_time=1, wall_time=1, memory=1, max_memory=1, disk=1, processors=1, min_processors=1, max_processors=1,
        gpus=1, tag=["a"], platform=["a"], to_site=["a"], banned_site=["a"], ce=["a"], station=["a"],
        grid_middleware=["a"], pilot_type=["a"], job_type="a", requirements="a", rank="a", output=["a"],
        stdout_limit=1, stderr_limit=1, priority=1, max_attempts=1, retries=1, after=["7"], after_any=["8"],
    )  # fmt: skip
    assert said.fields().keys() | IN_FILES_ALONE | {"input_sandbox"} == CHANGEABLE
