"""The settings of S3 as a configuration names them."""

import msgspec
import pytest

from wms.transfer.s3_settings import S3Settings


def test_unknown_keys_are_errors_and_no_secret_is_among_the_known() -> None:
    assert msgspec.convert({"endpoint": "https://s3"}, S3Settings).region == "us-east-1"
    with pytest.raises(msgspec.ValidationError, match="secret"):
        msgspec.convert({"secret_access_key": "x"}, S3Settings)
