"""URLs of files, and that their secrets are not told."""

import pytest

from wms.errors import Rejected
from wms.transfer.file_url import FileUrl, redacted


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://h/a?X-Amz-Signature=abc&x=1", "https://h/a?..."),
        ("https://user:secret@h/a", "https://...@h/a"),
        ("see https://h/a?sig=1, and http://h/b?sig=2", "see https://h/a?... and http://h/b?..."),
        ("https://h/a", "https://h/a"),
    ],
)
def test_queries_and_users_are_not_told(text: str, told: str) -> None:
    assert redacted(text) == told


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a/b",
        "http:///a",
        "http://h",
        "http://h/",
        "http://h:x/a",
        "file://h/a",
        "http://[/a",
        "http://h/a b",
    ],
)
def test_what_names_no_file_is_refused(text: str) -> None:
    with pytest.raises(Rejected) as refused:
        FileUrl.parse(text)
    assert refused.value.code == "URL_UNREADABLE"


def test_a_refusal_tells_no_secret() -> None:
    with pytest.raises(Rejected) as refused:
        FileUrl.parse("http://h:x/a?sig=secret")
    assert "secret" not in str(refused.value)


def test_the_parts_of_a_url() -> None:
    url = FileUrl.parse("DAVS://Host.org:8443/a%20b/c")
    assert (url.scheme, url.host, url.path, url.is_signed) == ("davs", "host.org", "/a%20b/c", False)
    assert url.endpoint == "davs://Host.org:8443"
    assert url.beside(".1.part").text == "davs://Host.org:8443/a%20b/c.1.part"
    assert url.with_scheme("https") == "https://Host.org:8443/a%20b/c"
    assert FileUrl.parse("s3://bucket/a%20b").path == "/a b"
