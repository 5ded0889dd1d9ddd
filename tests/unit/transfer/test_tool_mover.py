"""What tools say, and what it means."""

from pathlib import Path

import pytest

from wms.errors import Rejected, Unavailable
from wms.transfer.access_rules import AccessRules
from wms.transfer.file_url import FileUrl
from wms.transfer.mover import FULL, NO_ACCESS, NO_FILE
from wms.transfer.part_file import PartFile
from wms.transfer.tool_mover import XrootdMover, _failure
from wms.transfer.transfer_limits import Meter, TransferLimits

URL = FileUrl.parse("root://h//a?authz=secret")


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("[ERROR] Server responded with an error: [3011] No such file or directory", NO_FILE),
        ("[3010] Permission denied", NO_ACCESS),
        ("write: No space left on device", FULL),
    ],
)
def test_what_stays_is_told_by_a_code(said: str, code: str) -> None:
    failure = _failure(URL, f"{said} root://h//a?authz=secret")
    assert isinstance(failure, Rejected)
    assert failure.code == code
    assert "secret" not in str(failure)


def test_anything_else_may_be_better_next_time() -> None:
    assert isinstance(_failure(URL, "connection reset"), Unavailable)


async def test_a_node_without_the_tool_says_which(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    meter = Meter(TransferLimits(), 1, lambda _: None)
    with pytest.raises(Rejected, match=r"no xrdcp \(package xrootd-client\)"):
        await XrootdMover(AccessRules()).fetch(URL, PartFile(tmp_path / "a", is_verified=False), meter)
