"""Opens a bucket of S3 by a site's or a service's settings."""

import configparser
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from obstore.store import S3Store

from wms.errors import Unavailable
from wms.transfer.s3_settings import S3Settings

if TYPE_CHECKING:
    from obstore.store import RetryConfig


def opened_bucket(name: str, settings: S3Settings, *, tries: int, seconds: float) -> S3Store:
    """Return the bucket. Each request is tried at most `tries` times, each time for at most `seconds` seconds.

    Raise Unavailable if the credentials cannot be read.
    """
    secret = _credentials(settings.credentials_file)
    more = secret or {"skip_signature": True}
    if settings.endpoint:
        more |= {"endpoint": settings.endpoint, "virtual_hosted_style_request": False}
    retries: RetryConfig = {"max_retries": tries - 1, "retry_timeout": timedelta(seconds=tries * seconds)}
    return S3Store(
        name,
        region=settings.region,
        client_options={
            "allow_http": settings.endpoint.startswith("http:"),
            "timeout": timedelta(seconds=seconds),
        },
        retry_config=retries,
        **more,
    )


def _credentials(path: str) -> dict[str, Any]:
    """Return the credentials of the profile `default` in this file; empty for an empty path. Raise Unavailable if it cannot be read."""
    if not path:
        return {}
    try:
        profiles = configparser.ConfigParser(interpolation=None)
        profiles.read_string(Path(path).read_text("utf-8"))
        names = ("access_key_id", "secret_access_key", "session_token")
        told = {name: profiles.get("default", f"aws_{name}", fallback="") for name in names}
    except (OSError, ValueError, configparser.Error) as error:
        raise Unavailable(f"the credentials for S3 cannot be read: {type(error).__name__}: {path}") from None
    return {name: value for name, value in told.items() if value}
