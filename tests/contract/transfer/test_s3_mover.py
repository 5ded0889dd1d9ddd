"""Signed URLs of S3."""

from pathlib import Path

from tests.contract.transfer.conftest import MIB, deliverer, fetcher, refusal, sending
from tests.contract.transfer.storages import S3, settings
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
