"""Addresses of sandbox stores."""

from pathlib import Path

import pytest

from wms.errors import Rejected
from wms.transfer import open_store
from wms.transfer.directory_store import DirectoryStore
from wms.transfer.s3_settings import S3Settings
from wms.transfer.s3_store import S3SandboxStore


@pytest.mark.parametrize("url", ["/var/x", "s3:///x", "gs://bucket/x", "file://host/x", "file:relative", ""])
def test_an_address_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(Rejected, match="not an address"):
        open_store(url)


def test_the_scheme_chooses_the_kind(tmp_path: Path) -> None:
    assert isinstance(open_store(f"file://{tmp_path}/store"), DirectoryStore)
    assert isinstance(
        open_store("s3://bucket/prefix", S3Settings(endpoint="http://127.0.0.1:9")), S3SandboxStore
    )
