"""What is only so of a sandbox store in S3. What all stores do is in tests/contract/sandbox_store."""

from pathlib import Path

import aiohttp
import pytest
from yarl import URL

from tests.contract.sandbox_store.stores import S3Ground, place_of
from tests.s3_proxy import S3Proxy
from tests.waiting import eventually
from wms.errors import Unavailable
from wms.transfer import open_store

pytestmark = pytest.mark.timeout(240)


async def test_a_missing_bucket_is_not_the_callers_fault(s3_proxy: S3Proxy) -> None:
    store = open_store("s3://nowhere/prefix", s3_proxy.settings)
    with pytest.raises(Unavailable, match="no such bucket"):
        await store.put(b"data")
    with pytest.raises(Unavailable, match="no such bucket"):
        await store.delete_unreferenced(set(), 0)


async def test_what_others_keep_in_the_bucket_is_left_alone(s3_proxy: S3Proxy) -> None:
    ground = S3Ground(s3_proxy, "shared")
    for key in ("other/file", "kept/hereafter"):
        s3_proxy.client.put_object(Bucket="shared", Key=key, Body=b"x")
    ref = await ground.open().put(b"ours")
    ground.age(f"{ref.sha256[:2]}/{ref.sha256[2:]}", 100)
    gone = await ground.open().delete_unreferenced(set(), -60)
    assert gone.objects == 1
    left = [each["Key"] for each in s3_proxy.client.list_objects_v2(Bucket="shared")["Contents"]]
    assert {"other/file", "kept/hereafter"} <= set(left)


async def test_more_than_one_list_holds_is_collected(s3_proxy: S3Proxy) -> None:
    ground = S3Ground(s3_proxy, "many")
    unwanted = [f"{n:064x}" for n in range(1_100)]
    for each in unwanted:
        file = s3_proxy.file_of("many", f"kept/here/{place_of(each)}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
    gone = await ground.open().delete_unreferenced(set(unwanted[:50]), -60)
    assert (gone.objects, gone.bytes) == (1_050, 1_050)
    assert {place_of(each) for each in unwanted[:50]} <= set(ground.names())


async def test_the_whole_bucket_may_be_the_store(s3_proxy: S3Proxy, tmp_path: Path) -> None:
    s3_proxy.client.create_bucket(Bucket="whole")
    store = open_store("s3://whole", s3_proxy.settings)
    ref = await store.put(b"ours")
    await store.fetch(ref.sha256, tmp_path / "copy")
    assert (await store.delete_unreferenced({ref.sha256}, -60)).objects == 0
    assert await store.exists(ref.sha256)


async def test_a_signed_url_is_for_one_object_one_method_and_its_time(s3_proxy: S3Proxy) -> None:
    store = S3Ground(s3_proxy, "signed").open()
    mine, other = await store.put(b"mine"), await store.put(b"other")
    url = str(await store.download_url(mine.sha256, 3))

    async def status(url: str, method: str = "GET") -> int:
        async with session.request(method, URL(url, encoded=True)) as answer:
            return answer.status

    async with aiohttp.ClientSession() as session:
        assert await status(url) == 200
        assert await status(url, "PUT") == 403
        assert await status(url, "DELETE") == 403
        assert await status(url.replace(place_of(mine.sha256), place_of(other.sha256))) == 403
        assert await status(url.replace("X-Amz-Expires=3", "X-Amz-Expires=300")) == 403

        async def expired() -> bool:
            return await status(url) == 403

        await eventually(expired)
    assert await store.exists(mine.sha256)


async def test_a_wrong_secret_key_makes_the_store_unavailable(s3_proxy: S3Proxy, tmp_path: Path) -> None:
    ground = S3Ground(s3_proxy, "closed")
    ref = await ground.open().put(b"data")
    store = open_store(ground.url, s3_proxy.settings_with(tmp_path, "wrong-secret"))
    for refused in (store.put(b"data"), store.fetch(ref.sha256, tmp_path / "copy"), store.exists(ref.sha256)):
        with pytest.raises(Unavailable) as failure:
            await refused
        assert "wrong-secret" not in str(failure.value)
