"""Stage-in: bounds on all inputs together, and one failure that ends the rest."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from wms.errors import Rejected
from wms.jobdesc.staged_file import InputFile
from wms.transfer.access_rules import AccessRules
from wms.transfer.movers import TransferSettings
from wms.transfer.stage_in import StageIn, TransferSite, within
from wms.transfer.transfer_limits import TransferLimits


def _site(place: Path, **limits: float) -> TransferSite:
    access = AccessRules(directories=[str(place)])
    return TransferSite(TransferSettings(access=access, limits=TransferLimits(**limits)), Random(1))  # type: ignore[arg-type]


def _inputs(place: Path, *sizes: int, known: bool = True) -> tuple[InputFile, ...]:
    for n, size in enumerate(sizes):
        (place / str(n)).write_bytes(bytes(size))
    return tuple(
        InputFile(name=f"in/{n}", sources=((place / str(n)).as_uri(),), size=size if known else None)
        for n, size in enumerate(sizes)
    )


async def test_all_inputs_are_fetched_and_counted(tmp_path: Path) -> None:
    staging = StageIn(_site(tmp_path), _inputs(tmp_path, 3, 0, 5), None)
    assert str(staging.progress) == "0 of 3 files, 0 of 8 bytes"
    done = await staging.run(tmp_path / "work")
    assert [(each.name, each.size) for each in done] == [("in/0", 3), ("in/1", 0), ("in/2", 5)]
    assert str(staging.progress) == "3 of 3 files, 8 of 8 bytes"
    assert sorted(each.name for each in (tmp_path / "work" / "in").iterdir()) == ["0", "1", "2"]


@pytest.mark.parametrize("known", [True, False])
async def test_no_more_is_fetched_than_allowed(tmp_path: Path, *, known: bool) -> None:
    for site, most in ((_site(tmp_path, job_bytes=7), None), (_site(tmp_path), 7)):
        staging = StageIn(site, _inputs(tmp_path, 3, 5, known=known), most)
        assert (staging.progress.bytes_total is None) is not known
        with pytest.raises(Rejected, match=r"7 may be fetched|more than 7 bytes"):
            await staging.run(tmp_path / f"work-{most}")


async def test_two_inputs_in_one_place_are_refused(tmp_path: Path) -> None:
    (one,) = _inputs(tmp_path, 1)
    work = tmp_path / "work"
    (work / "in").mkdir(parents=True)
    (work / "in" / "0").touch()
    with pytest.raises(Rejected, match="is in the input sandbox already"):
        await StageIn(_site(tmp_path), (one,), None).run(work)
    (work / "in" / "0").unlink()
    (work / "in").rmdir()
    (work / "in").touch()
    with pytest.raises(Rejected, match="lies below another file"):
        await StageIn(_site(tmp_path), (one,), None).run(work)


async def test_the_first_failure_ends_the_others() -> None:
    running = []

    async def wait() -> None:
        running.append(True)
        try:
            await asyncio.Event().wait()
        finally:
            running.pop()

    async def fail() -> None:
        raise Rejected("NO", "no")

    with pytest.raises(Rejected, match="no"):
        await within(TransferLimits(parallel=2), [wait(), fail(), wait()])
    assert not running
    with pytest.raises(Rejected, match=r"within 0\.01 s"):
        await within(TransferLimits(job_seconds=0.01), [wait()])
