"""What is only so of a sandbox store in S3. What all stores do is in tests/contract/sandbox_store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.sandbox_store.stores import S3Ground, S3Server
from wms.errors import Unavailable
from wms.transfer import open_store


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


async def test_a_missing_bucket_is_not_the_callers_fault(server: S3Server) -> None:
    store = open_store("s3://nowhere/prefix", server.settings)
    with pytest.raises(Unavailable, match="no such bucket"):
        await store.put(b"data")
    with pytest.raises(Unavailable, match="no such bucket"):
        await store.delete_unreferenced(set(), 0)


async def test_what_others_keep_in_the_bucket_is_left_alone(server: S3Server) -> None:
    ground = S3Ground(server, "shared")
    for key in ("other/file", "kept/hereafter"):
        server.client.put_object(Bucket="shared", Key=key, Body=b"x")
    ref = await ground.open().put(b"ours")
    ground.age(f"{ref.sha256[:2]}/{ref.sha256[2:]}", 100)
    gone = await ground.open().delete_unreferenced(set(), -60)
    assert gone.objects == 1
    left = [each["Key"] for each in server.client.list_objects_v2(Bucket="shared")["Contents"]]
    assert {"other/file", "kept/hereafter"} <= set(left)


async def test_the_whole_bucket_may_be_the_store(server: S3Server, tmp_path: Path) -> None:
    server.client.create_bucket(Bucket="whole")
    store = open_store("s3://whole", server.settings)
    ref = await store.put(b"ours")
    await store.fetch(ref.sha256, tmp_path / "copy")
    assert (await store.delete_unreferenced({ref.sha256}, -60)).objects == 0
    assert await store.exists(ref.sha256)
