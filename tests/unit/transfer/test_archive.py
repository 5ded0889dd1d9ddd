"""Archives: equal content gives equal bytes, and nothing hostile comes out of one."""

import contextlib
import gzip
import io
import os
import tarfile
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wms.errors import Rejected
from wms.transfer import ArchiveLimits, download, open_store, pack, unpack, upload


def packed(members: dict[str, Path | bytes]) -> bytes:
    target = io.BytesIO()
    pack(members, target)
    return target.getvalue()


def tar_of(*members: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes], pax: bool = True) -> bytes:
    out = io.BytesIO()
    with tarfile.open(
        fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT if pax else tarfile.GNU_FORMAT
    ) as tar:
        for member in members:
            info, data = member if isinstance(member, tuple) else (member, b"")
            info.size = len(data) or info.size
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def info(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    result = tarfile.TarInfo(name)
    result.type = kind
    result.linkname = link
    return result


def test_what_is_packed_comes_out_again(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o4755)
    big = os.urandom(700_000)
    long = "d" * 200 + "/" + "n" * 200
    members: dict[str, Path | bytes] = {"run.sh": script, "a/b/c.txt": b"c", "big": big, "empty": b""}
    members |= {long: b"x", "größe": b"g", "dir": tmp_path}
    dest = tmp_path / "dest"
    dest.mkdir()
    total = unpack(packed(members), dest)
    assert total == sum(len(m) for m in members.values() if isinstance(m, bytes)) + len("#!/bin/sh\n")
    assert (dest / "run.sh").stat().st_mode & 0o7777 & ~0o022 == 0o755
    assert (dest / "a/b/c.txt").stat().st_mode & 0o111 == 0
    assert (dest / "big").read_bytes() == big
    assert (dest / long).read_bytes() == b"x"
    assert (dest / "größe").read_bytes() == b"g"
    assert (dest / "dir").is_dir()


def test_equal_content_gives_equal_bytes(tmp_path: Path) -> None:
    for name, mode, when in (("one", 0o600, 1e9), ("two", 0o664, 1.5e9)):
        (tmp_path / name).write_bytes(b"same")
        (tmp_path / name).chmod(mode)
        os.utime(tmp_path / name, (when, when))
    os.utime(tmp_path / "two", (1e9, 1e9))
    first = packed({"a": tmp_path / "one", "b": b"2"})
    second = packed({"b": b"2", "a": tmp_path / "two"})
    assert first == second
    assert packed({"a": b"same", "b": b"2"}) == packed({"b": b"2", "a": b"same"})
    assert packed({"a": b"same", "b": b"2"}) != packed({"a": b"same", "b": b"3"})


@pytest.mark.parametrize("when_ns", [1, 1_700_000_000_123_456_789, 1_700_000_001_000_000_000, 2**62 - 1])
def test_files_keep_their_modification_times(tmp_path: Path, when_ns: int) -> None:
    (tmp_path / "one").write_bytes(b"1")
    os.utime(tmp_path / "one", ns=(when_ns, when_ns))
    unpack(packed({"one": tmp_path / "one"}), tmp_path / "dest")
    assert (tmp_path / "dest" / "one").stat().st_mtime_ns == when_ns


@pytest.mark.parametrize("said", ["-5", "1e9", "9" * 30, "nan", "4611686019", "1.x", "\u0663"])
def test_a_time_that_cannot_be_set_is_that_of_the_unpacking(tmp_path: Path, said: str) -> None:
    member = info("one")
    member.pax_headers = {"mtime": said}
    with contextlib.suppress(Rejected):
        unpack(tar_of((member, b"1")), tmp_path / "dest")
        assert (tmp_path / "dest" / "one").stat().st_mtime > 1.5e9


HOSTILE = {
    "absolute": info("/etc/evil"),
    "traversal": info("../evil"),
    "traversal within": info("a/../../evil"),
    "harmless traversal": info("a/../b"),
    "absolute symlink": info("link", tarfile.SYMTYPE, "/etc"),
    "climbing symlink": info("link", tarfile.SYMTYPE, "../.."),
    "symlink that stays inside": info("link", tarfile.SYMTYPE, "a"),
    "hard link": info("link", tarfile.LNKTYPE, "/etc/passwd"),
    "fifo": info("pipe", tarfile.FIFOTYPE),
    "character device": info("null", tarfile.CHRTYPE),
    "block device": info("disk", tarfile.BLKTYPE),
    "unknown kind": info("what", b"Z"),
    "newline": info("two\nlines"),
    "escape": info("\x1b[2Jname"),
    "undecodable": info("\udcff"),
    "empty part": info("a//b"),
    "long name": info("x/" * 600 + "y"),
    "long part": info("n" * 256),
    "deep": info("/".join("d" * 65)),
}


@pytest.mark.parametrize("pax", [True, False])
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_member_is_refused_by_name(tmp_path: Path, what: str, *, pax: bool) -> None:
    dest = tmp_path / "in" / "dest"
    dest.mkdir(parents=True)
    member = HOSTILE[what]
    with pytest.raises(Rejected) as refusal:
        unpack(tar_of((info("good"), b"good"), member, pax=pax), dest)
    assert refusal.value.code == "SANDBOX_REFUSED"
    assert "the archive's member" in refusal.value.message
    assert repr(member.name[:20])[1:5].replace("\\", "")[:2] in refusal.value.message.replace("\\", "")
    assert [p.name for p in dest.rglob("*")] == ["good"]
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


def test_an_older_python_refuses_and_unpacks_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python 3.11 has no filters of archives before 3.11.4."""
    for name in ("data_filter", "FilterError"):
        monkeypatch.delattr(tarfile, name, raising=False)
    for what, member in HOSTILE.items():
        with pytest.raises(Rejected, match="the archive's member"):
            unpack(tar_of((info(f"{what}/good"), b"good"), member), tmp_path)
        assert (tmp_path / what / "good").read_bytes() == b"good"
    assert {path.name for path in tmp_path.iterdir()} == HOSTILE.keys()


def test_a_second_file_of_one_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="'a' is there already"):
        unpack(tar_of((info("a"), b"1"), (info("a"), b"2")), tmp_path)
    with pytest.raises(Rejected, match="'a/b' is there already"):
        unpack(tar_of((info("a/b"), b"1")), tmp_path)
    with pytest.raises(Rejected, match="'c' is there already"):
        unpack(tar_of((info("c/d"), b"1"), (info("c"), b"2")), tmp_path)


def test_a_file_of_a_later_archive_replaces_that_of_an_earlier_one(tmp_path: Path) -> None:
    unpack(packed({"p.sh": b"a much longer first version", "data": b"1"}), tmp_path)
    unpack(packed({"p.sh": b"second"}), tmp_path)
    assert (tmp_path / "p.sh").read_bytes() == b"second"
    assert (tmp_path / "data").read_bytes() == b"1"


def test_a_link_already_in_the_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "dest").mkdir()
    (tmp_path / "dest" / "out").symlink_to(tmp_path / "victim")
    with pytest.raises(Rejected, match="'out'"):
        unpack(tar_of((info("out"), b"1")), tmp_path / "dest")
    assert not (tmp_path / "victim").exists()


def test_too_many_members_are_refused(tmp_path: Path) -> None:
    archive = tar_of(*(info(str(n)) for n in range(11)))
    with pytest.raises(Rejected, match="'10' is one more than the 10 members"):
        unpack(archive, tmp_path, ArchiveLimits(members=10))


def test_too_many_bytes_are_refused(tmp_path: Path) -> None:
    archive = tar_of((info("a"), bytes(6000)), (info("b"), bytes(6000)))
    with pytest.raises(Rejected, match="'b' brings the archive over 10000 bytes"):
        unpack(archive, tmp_path, ArchiveLimits(total_bytes=10_000))


def test_a_bomb_is_refused_before_it_is_written(tmp_path: Path) -> None:
    bomb = tar_of((info("bomb"), bytes(50 * 1024 * 1024)))
    assert len(bomb) < 100_000
    with pytest.raises(Rejected, match="'bomb' brings the archive over"):
        unpack(bomb, tmp_path, ArchiveLimits(total_bytes=40 * 1024 * 1024))
    assert not list(tmp_path.iterdir())


def test_what_follows_the_last_member_is_bounded_too(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(50 * 1024 * 1024))
    with pytest.raises(Rejected, match="holds more than 1000 bytes"):
        unpack(bomb, tmp_path, ArchiveLimits(total_bytes=1000, members=10))


def for_all_members(n: int, size: int) -> bytes:
    """Return a header for all members that follow (pax, global), with a long value under a name of its own."""
    header = tarfile.TarInfo("global")
    record = f" k{n:07}={'a' * size}\n".encode()
    record = f"{len(record) + 5}".encode() + record
    header.type, header.size = tarfile.XGLTYPE, len(record)
    return header.tobuf(tarfile.USTAR_FORMAT) + record + bytes(-len(record) % tarfile.BLOCKSIZE)


def test_headers_for_all_members_take_no_memory_for_long(tmp_path: Path) -> None:
    headers, size, each = 1_000, 50_000, 20
    parts = [
        for_all_members(n, size) + (info(f"d{n}", tarfile.DIRTYPE).tobuf() if n % each == 1 else b"")
        for n in range(headers, 0, -1)
    ]
    archive = gzip.compress(b"".join([*parts, bytes(2 * tarfile.BLOCKSIZE)]))
    assert len(archive) < 1_000_000 < headers * size
    tracemalloc.start()
    try:
        assert unpack(archive, tmp_path) == 0
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(1 for _ in tmp_path.iterdir()) == headers // each
    assert taken < headers * size / 5


def test_zeros_come_out_again_however_well_they_pack(tmp_path: Path) -> None:
    size = 90_000_000
    sparse = tmp_path / "sparse"
    with sparse.open("wb") as file:
        file.truncate(size)
    archive = packed({"zeros": sparse})
    assert len(archive) < size // 200
    (tmp_path / "dest").mkdir()
    assert unpack(archive, tmp_path / "dest") == size


def test_very_many_files_come_out_again(tmp_path: Path) -> None:
    archive = packed({f"d{n % 7}/{n}": b"" for n in range(12_000)})
    assert unpack(archive, tmp_path) == 0
    assert sum(path.is_file() for path in tmp_path.rglob("*")) == 12_000


def test_what_cannot_be_unpacked_is_not_packed(tmp_path: Path) -> None:
    target = io.BytesIO()
    with pytest.raises(Rejected, match="'c' is one more than the 2 members"):
        pack(dict.fromkeys("abc", b""), target, limits=ArchiveLimits(members=2))
    with pytest.raises(Rejected, match="'b' brings the archive over 10 bytes"):
        pack({"a": b"12345", "b": b"123456"}, target, limits=ArchiveLimits(total_bytes=10))
    endless = tmp_path / "endless"
    with endless.open("wb") as file:
        file.truncate(200 << 30)
    with pytest.raises(Rejected, match="'endless' brings the archive over"):
        packed({"endless": endless})
    for clash in ({"a": b"", "a/b": b""}, {"a/": b""}, {"a": tmp_path, "a/": b""}):
        with pytest.raises(Rejected, match="is there already"):
            packed(clash)  # type: ignore[arg-type]


PARTS = st.one_of(
    st.sampled_from(
        [".", "..", "a", "b", "", "n" * 255, "n" * 256, "ü" * 127, "ü" * 128, "a b", "\u202e", "\xa0"]
    ),
    st.text(max_size=20),
)
NAMES = st.one_of(
    st.lists(PARTS, min_size=1, max_size=6).map("/".join),
    st.integers(1, 70).map(lambda depth: "/".join("d" * depth)),
    st.integers(90, 1_100).map(lambda length: ("x/" * length)[:length].rstrip("/") + "y"),
)
CONTENTS = st.one_of(st.binary(max_size=2_000), st.integers(0, 300_000).map(bytes))


@given(st.dictionaries(NAMES, CONTENTS, max_size=8))
def test_whatever_is_packed_comes_out_again(members: dict[str, bytes]) -> None:
    kept: dict[str, bytes] = {}
    for name, content in members.items():
        with contextlib.suppress(Rejected):
            packed({**kept, name: content})
            kept[name] = content
    with tempfile.TemporaryDirectory() as directory:
        total = unpack(packed(kept), Path(directory))  # type: ignore[arg-type]
        assert total == sum(map(len, kept.values()))
        assert {name: Path(directory, name).read_bytes() for name in kept} == kept


@pytest.mark.parametrize(
    "kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK]
)
def test_a_huge_extended_header_is_not_read_into_memory(tmp_path: Path, kind: bytes) -> None:
    header = info("header", kind)
    header.size = 1 << 30
    raw = gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 20))
    with pytest.raises(Rejected, match="extended header"):
        unpack(raw, tmp_path)


def test_a_chain_of_extended_headers_is_refused(tmp_path: Path) -> None:
    header = info("h", tarfile.XHDTYPE)
    header.size = 0
    raw = gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) * 5000)
    with pytest.raises(Rejected):
        unpack(raw, tmp_path)


def test_a_sparse_member_is_refused(tmp_path: Path) -> None:
    member = info("sparse")
    member.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.realsize": "1000000000000",
    }
    with pytest.raises(Rejected):
        unpack(tar_of((member, b"0\n" + bytes(510))), tmp_path)


def truncated(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


def flipped(whole: bytes) -> bytes:
    return whole[:-6] + bytes([whole[-6] ^ 1]) + whole[-5:]


@pytest.mark.parametrize(
    "damage",
    [truncated, flipped, lambda _: b"", lambda _: b"plain text", lambda w: gzip.compress(b"x" * 1000)],
)
def test_what_is_no_whole_archive_is_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    whole = packed({"a": os.urandom(50_000)})
    with pytest.raises(Rejected) as refusal:
        unpack(damage(whole), tmp_path)
    assert refusal.value.code == "SANDBOX_REFUSED"


@pytest.mark.parametrize("name", ["/abs", "../up", "a/../b", "new\nline", "", "a//b"])
def test_a_bad_name_is_not_packed(name: str) -> None:
    with pytest.raises(Rejected, match="member"):
        packed({name: b""})


def test_a_fifo_is_not_packed_and_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(Rejected, match="'p' is not a regular file"):
        packed({"p": tmp_path / "pipe"})
    with pytest.raises(Rejected, match="'gone' cannot be read"):
        packed({"gone": tmp_path / "gone"})


async def test_files_go_up_and_come_down(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store")
    large = tmp_path / "large"
    large.write_bytes(os.urandom(6_000_000))
    for members in ({"small": b"1"}, {"large": large, "small": b"1"}):
        ref = await upload(store, members)  # type: ignore[arg-type]
        dest = tmp_path / ref.sha256
        dest.mkdir()
        with pytest.raises(Rejected, match="its reference says"):
            await download(store, ref.sha256, dest, size=ref.size + 1)
        assert not list(dest.iterdir())
        await download(store, ref.sha256, dest, size=ref.size)
        assert sorted(p.name for p in dest.iterdir()) == sorted(members)
    assert (dest / "large").read_bytes() == large.read_bytes()


async def test_files_over_the_limit_are_refused_while_they_are_packed(tmp_path: Path) -> None:
    store = open_store(f"file://{tmp_path}/store", max_object=1_000_000)
    large = tmp_path / "large"
    large.write_bytes(os.urandom(6_000_000))
    with pytest.raises(Rejected) as refusal:
        await upload(store, {"large": large})
    assert refusal.value.code == "SANDBOX_TOO_LARGE"
