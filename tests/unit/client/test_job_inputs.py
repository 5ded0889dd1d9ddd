"""Input files of single jobs of a sweep: one description, an archive for each distinct set of files."""

from pathlib import Path

import msgspec
import pytest

from wms.cli.inputs import inputs_of
from wms.client import job_inputs
from wms.client.job_inputs import archives, is_own, paths_of_jobs, with_archives
from wms.errors import Rejected
from wms.jobdesc import JobDescription, validate
from wms.jobdesc.array import expand, without_lists
from wms.jobdesc.description import SandboxRef

SWEEP = JobDescription(executable="cat", arguments=("{s}.txt",), parameters={"s": ("a", "b", "a")})
REFS = [SandboxRef(sha256=digit * 64, size=int(digit)) for digit in "123"]


def test_each_job_gets_its_own_archive_and_the_sweep_stays_one_description() -> None:
    shared = SandboxRef(sha256="f" * 64, size=9)
    sweep = with_archives(msgspec.structs.replace(SWEEP, input_sandbox=(shared,)), REFS)
    assert validate(sweep) == []
    for n, ref in enumerate(REFS):
        assert expand(sweep, n).input_sandbox == (shared, ref)
    assert expand(sweep, 1).input_parameters == ()
    own = {"s": "b", "wms_input": f"{'2' * 64}:2"}
    assert expand(without_lists(sweep), 1, own).input_sandbox == (shared, REFS[1])


@pytest.mark.parametrize("value", ["", "x", "1" * 64, f"{'1' * 64}:-1", f"{'A' * 64}:1", f"{'1' * 64}:01"])
def test_a_value_that_names_no_archive_is_refused(value: str) -> None:
    wrong = JobDescription(executable="cat", parameters={"x": (value,)}, input_parameters=("x",))
    assert [each.place for each in validate(wrong)] == ["parameters.x[0]"]
    with pytest.raises(ValueError, match="names no archive"):
        expand(wrong, 0)


def test_an_input_parameter_without_a_list_is_refused() -> None:
    wrong = msgspec.structs.replace(SWEEP, input_parameters=("other",))
    assert [each.place for each in validate(wrong)] == ["input_parameters[0]"]


def test_only_paths_with_a_name_of_the_sweep_are_single_jobs() -> None:
    assert [is_own(path, SWEEP) for path in ("{s}", "x/{n}.txt", "{other}", "{{s}}", "plain")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert not is_own("{n}", JobDescription(executable="cat"))


def test_files_are_packed_once_for_all_jobs_that_have_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "common"):
        Path(f"{name}.txt").write_text(name)
    paths = paths_of_jobs(["{s}.txt"], SWEEP)
    assert paths == [("a.txt",), ("b.txt",), ("a.txt",)]
    assert archives(paths) == {("a.txt",): {"a.txt": Path("a.txt")}, ("b.txt",): {"b.txt": Path("b.txt")}}
    (inputs,) = inputs_of([SWEEP], ["common.txt", "{s}.txt"])
    assert (list(inputs.shared), inputs.own) == (["common.txt"], paths)
    monkeypatch.setattr(job_inputs, "BYTES_LIMIT", 1)
    with pytest.raises(Rejected, match="INPUTS_TOO_LARGE"):
        archives(paths)
    monkeypatch.setattr(job_inputs, "ARCHIVES_LIMIT", 1)
    with pytest.raises(Rejected, match="TOO_MANY_INPUTS"):
        archives(paths)
    Path("b.txt").unlink()
    with pytest.raises(Rejected, match=r"no file b\.txt"):
        inputs_of([SWEEP], ["b.txt"])
