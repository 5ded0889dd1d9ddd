"""What only the mover of S3 does: signed URLs, and wrong credentials."""

from pathlib import Path

import msgspec
import pytest

from tests.contract.transfer.conftest import MIB, deliverer, fetcher, refusal, sending
from tests.contract.transfer.storages import S3, settings
from tests.s3_proxy import S3Proxy
from wms.errors import Rejected
from wms.jobdesc.staged_file import InputFile


async def test_a_signed_url_works_and_its_signature_is_never_told(s3: S3, tmp_path: Path) -> None:
    s3.write("signed", b"secret")
    url = s3.signed("signed")
    await fetcher(settings()).fetch(InputFile(name="f", sources=(url,)), tmp_path / "f", MIB)
    assert (tmp_path / "f").read_bytes() == b"secret"
    (tmp_path / "f").unlink()
    target = s3.signed("put-by-url", "put_object")
    await deliverer(settings()).deliver("r", sending(tmp_path, b"put"), (target,))
    assert s3.read("put-by-url") == b"put"
    (tmp_path / "source").unlink()
    refused = await refusal(fetcher(settings()), tmp_path, s3.signed("nowhere"))
    assert "Signature" not in str(refused)
    assert "nowhere?..." in str(refused)


async def test_a_wrong_secret_key_is_said_to_be_denied_access(
    s3: S3, s3_proxy: S3Proxy, tmp_path: Path
) -> None:
    s3.write("closed", b"secret")
    wrong = msgspec.structs.replace(s3.settings, s3=s3_proxy.settings_with(tmp_path, "wrong-secret"))
    (tmp_path / "work").mkdir()
    refused = await refusal(fetcher(wrong), tmp_path / "work", s3.url("closed"))
    assert "the server denies access" in str(refused)
    with pytest.raises(Rejected, match="the server denies access"):
        await deliverer(wrong).deliver("r", sending(tmp_path, b"put"), (s3.url("put-closed"),))
    assert s3.read("put-closed") is None
