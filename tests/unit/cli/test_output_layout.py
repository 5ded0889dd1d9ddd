"""Where fetched files go: paths made by a pattern, never out of the directory and never two files in one place."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.unit.messages.examples import FULL
from wms.cli.output_layout import OutputLayout, target_of
from wms.client.files import Fetched
from wms.errors import Rejected
from wms.messages.replies import JobDetail

DETAIL = FULL["job-detail"]
assert isinstance(DETAIL, JobDetail)
JOB = replace(
    DETAIL,
    job=replace(DETAIL.job, job_id=17, name="fit a/b", job_group="fits"),
    array_index=3,
    parameters={"sample": "x1", "way": "../up"},
)
TO = Path("results")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("{name}/{file}", "results/fit a_b/out/h.txt"),
        ("{group}/{id}-{n}/{file}", "results/fits/17-3/out/h.txt"),
        ("{sample}.{file}", "results/x1.out/h.txt"),
        ("{way}/{file}", "results/.._up/out/h.txt"),
        ("a/./b/{file}", "results/a/b/out/h.txt"),
    ],
)
def test_a_pattern_says_where_files_go(pattern: str, path: str) -> None:
    assert target_of(TO, pattern, JOB, "out/h.txt") == Path(path)


def test_flat_files_have_no_directories() -> None:
    assert target_of(TO, "{id}-{file}", JOB, "out/h.txt", flat=True) == Path("results/17-out_h.txt")


@pytest.mark.parametrize("pattern", ["../{file}", "/{file}", "{n}/../../{file}", "{size}/{file}"])
def test_a_pattern_that_leads_out_or_names_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(Rejected, match="--pattern"):
        target_of(TO, pattern, JOB, "out/h.txt")


def test_names_cannot_lead_out() -> None:
    for name in ("..", ".", "", "/"):
        job = replace(JOB, job=replace(JOB.job, name=name))
        assert target_of(TO, "{name}/{file}", job, "h.txt") == Path("results/_/h.txt")


class Kept:
    """A client whose jobs all kept the same three files."""

    async def show(self, job_id: int) -> JobDetail:
        return replace(JOB, job=replace(JOB.job, job_id=job_id))

    async def output(self, job_id: int, dest: Path, *, overwrite: bool = False) -> Fetched:
        assert not overwrite
        for name in ("fit.json", "out/more.json", "trace.log"):
            (dest / name).parent.mkdir(parents=True, exist_ok=True)
            (dest / name).write_text(name)
        return Fetched(job_id=job_id, directory=str(dest), files=3, bytes=30)


@pytest.mark.parametrize(
    ("pattern", "only", "files"),
    [
        ("", ["fit.json"], ["17/fit.json"]),
        ("", ["*.json"], ["17/fit.json", "17/out/more.json"]),
        ("", ["fit.*", "trace*"], ["17/fit.json", "17/trace.log"]),
        ("{n}-{file}", ["fit.json"], ["3-fit.json"]),
    ],
)
async def test_only_the_files_of_patterns_are_kept(
    tmp_path: Path, pattern: str, only: list[str], files: list[str]
) -> None:
    layout = OutputLayout(tmp_path, pattern, flat=False, overwrite=False, only=only)
    fetched = await layout.fetch(Kept(), 17)  # type: ignore[arg-type] # a stand-in
    found = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(tmp_path)) for path in found) == files
    assert (fetched.files, fetched.bytes) == (len(files), sum(path.stat().st_size for path in found))


async def test_a_job_without_a_file_of_the_pattern_is_refused(tmp_path: Path) -> None:
    layout = OutputLayout(tmp_path, "", flat=False, overwrite=False, only=["*.root"])
    with pytest.raises(Rejected, match=r"job 17 kept no file of \*\.root"):
        await layout.fetch(Kept(), 17)  # type: ignore[arg-type] # a stand-in
    assert not list(tmp_path.iterdir())
