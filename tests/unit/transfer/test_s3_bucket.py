"""The credentials of a bucket come from a file, and what is wrong with it is said without its content."""

from pathlib import Path

import pytest

from wms.errors import Unavailable
from wms.transfer.s3_bucket import opened_bucket
from wms.transfer.s3_settings import S3Settings


def opened(path: Path | str) -> object:
    settings = S3Settings(endpoint="http://127.0.0.1:9", credentials_file=str(path))
    return opened_bucket("bucket", settings, tries=1, seconds=1)


def test_credentials_are_read_from_the_profile_default(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(
        "[other]\naws_access_key_id = x\n[default]\naws_access_key_id = us\naws_secret_access_key = o%rs\n"
    )
    assert opened(file)
    assert opened(""), "without a file nothing is signed"


@pytest.mark.parametrize("content", [None, b"no profile secret", b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named_and_not_quoted(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "credentials"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(Unavailable, match=str(file)) as refusal:
        opened(file)
    assert "secret" not in str(refusal.value)
