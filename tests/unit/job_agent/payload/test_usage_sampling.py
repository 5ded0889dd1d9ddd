"""Usage of payloads: processes, memory, disks and files without a name."""

import os
from pathlib import Path

from services.job_agent.payload import shepherd
from services.job_agent.payload.limit_enforcement import PayloadLimits
from services.job_agent.payload.usage_sampling import (
    Tree,
    Watched,
    disk_bytes,
    proportional_bytes,
    unlinked_bytes,
    usage_by_mark,
)
from tests.unit.job_agent.examples import failing


async def test_who_cannot_be_watched_is_ended_and_nobody_else() -> None:
    faults: list[Exception] = []
    watched = Watched(None, PayloadLimits(), lambda: 0, failing, faults.append)  # type: ignore[arg-type]
    with watched.answering():
        watched.record_disk(1, 0.0)
    assert [str(error) for error in faults] == ["injected"]


def test_a_look_at_this_process() -> None:
    mark = shepherd.mark_of(os.getpid())
    assert mark is not None
    tree = usage_by_mark([mark])[mark]
    assert os.getpid() in tree.pids
    assert tree.rss_bytes > 10 << 20
    assert tree.cpu_seconds > 0
    alone = proportional_bytes([os.getpid()])
    assert alone
    assert alone > 1 << 20
    assert proportional_bytes([2**22 + 1]) is None


def test_of_a_payload_in_an_image_what_is_outside_of_its_container_does_not_count() -> None:
    mark = shepherd.mark_of(os.getpid())
    assert mark is not None
    assert os.getpid() in usage_by_mark([mark])[mark].pids
    assert os.getpid() not in usage_by_mark([mark], {mark: os.getpid()})[mark].pids


def test_disk_is_what_is_allocated(tmp_path: Path) -> None:
    assert disk_bytes([tmp_path, tmp_path / "none"]) == 0
    (tmp_path / "deep" / "er").mkdir(parents=True)
    base = disk_bytes([tmp_path])
    (tmp_path / "deep" / "er" / "file").write_bytes(bytes(1 << 20))
    os.link(tmp_path / "deep" / "er" / "file", tmp_path / "again")
    (tmp_path / "link").symlink_to("/usr")
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(1 << 30)
    assert 1 << 20 <= disk_bytes([tmp_path]) - base < (1 << 20) + 20_000


def test_files_that_lost_their_names_are_counted_while_they_are_open(tmp_path: Path) -> None:
    tree = Tree(pids=[os.getpid()])
    before = unlinked_bytes(tree)
    with (tmp_path / "gone").open("wb") as file:
        (tmp_path / "gone").unlink()
        file.write(bytes(3 << 20))
        file.flush()
        os.fsync(file.fileno())
        assert unlinked_bytes(tree) - before >= 3 << 20
