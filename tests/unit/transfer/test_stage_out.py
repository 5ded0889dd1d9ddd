"""Stage-out: outputs go to all their targets, and optional ones may be missed."""

from pathlib import Path
from random import Random

import pytest

from wms.errors import Rejected
from wms.jobdesc.staged_file import OutputFile
from wms.transfer.access_rules import AccessRules
from wms.transfer.movers import TransferSettings
from wms.transfer.stage_in import TransferSite
from wms.transfer.stage_out import StageOut
from wms.transfer.transfer_limits import TransferLimits

MARK = ".7.2.part"


def _site(place: Path, **limits: int) -> TransferSite:
    access = AccessRules(directories=[str(place)])
    return TransferSite(TransferSettings(access=access, limits=TransferLimits(**limits)), Random(1))


def _output(name: str, *targets: Path, optional: bool = False) -> OutputFile:
    return OutputFile(name=name, targets=tuple(each.as_uri() for each in targets), optional=optional)


async def test_outputs_go_to_all_targets_and_optional_ones_may_be_missed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"data")
    got = tmp_path / "got"
    outputs = (_output("a", got / "1", got / "2"), _output("b", got / "3", optional=True))
    staging = StageOut(_site(got), outputs, MARK, lambda: True)
    done = await staging.run({"a": tmp_path / "a"})
    assert [each.size for each in done.transferred] == [4, 4]
    assert done.missed == ("the output 'b' is not there",)
    assert str(staging.progress) == "2 of 3 files, 8 of 8 bytes"
    assert sorted(each.name for each in got.iterdir()) == ["1", "2"]


async def test_an_attempt_without_its_lease_gives_no_file_its_name(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"data")
    got = tmp_path / "got"
    got.mkdir()
    outputs = (_output("a", got / "1", optional=True),)
    with pytest.raises(Rejected, match="the lease ended"):
        await StageOut(_site(got), outputs, MARK, lambda: False).run({"a": tmp_path / "a"})
    assert not list(got.iterdir())


async def test_no_more_is_sent_than_allowed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"data")
    outputs = (_output("a", tmp_path / "1", tmp_path / "2"),)
    with pytest.raises(Rejected, match="8 bytes of 7 allowed"):
        await StageOut(_site(tmp_path, job_bytes=7), outputs, MARK, lambda: True).run({"a": tmp_path / "a"})
