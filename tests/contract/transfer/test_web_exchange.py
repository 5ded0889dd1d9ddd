"""Where web servers may not lead."""

from pathlib import Path

import pytest

from tests.contract.transfer.conftest import MIB, fetcher, refusal
from tests.contract.transfer.faulty_web_server import CONTENT
from tests.contract.transfer.storages import Nginx, settings
from wms.jobdesc.staged_file import InputFile
from wms.transfer.access_rules import REFUSED, AccessRules
from wms.transfer.movers import TransferSettings


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("loop/a", "leads on after 5 redirections"),
        ("inside/a", "169.254.169.254"),
        ("away/a", "which is not on the web"),
        ("closed/a", "403 Forbidden"),
        ("busy/a", "503 Service Unavailable"),
        ("slow/in/good", "too slow"),
    ],
)
async def test_what_a_server_may_not_do_is_told(nginx: Nginx, tmp_path: Path, path: str, words: str) -> None:
    nginx.write("in/good", CONTENT)
    refused = await refusal(fetcher(settings()), tmp_path, nginx.url(path))
    assert words in refused.message


async def test_a_redirection_is_followed_within_the_rules_alone(nginx: Nginx, tmp_path: Path) -> None:
    nginx.write("in/good", b"good")
    url = nginx.url("elsewhere/in/good")
    await fetcher(settings()).fetch(InputFile(name="f", sources=(url,)), tmp_path / "f", MIB)
    assert (tmp_path / "f").read_bytes() == b"good"
    (tmp_path / "f").unlink()
    refused = await refusal(fetcher(settings(redirects=0)), tmp_path, url)
    assert "leads on after 0 redirections" in refused.message


async def test_this_machine_is_no_storage_unless_the_site_says_so(nginx: Nginx, tmp_path: Path) -> None:
    nginx.write("in/good", b"good")
    plain = TransferSettings(access=AccessRules(), limits=settings().limits)
    for host in ("localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"):
        refused = await refusal(fetcher(plain), tmp_path, f"http://{host}:{nginx.port}/in/good")
        assert refused.code == REFUSED, host
        assert "the node's own or of its link" in refused.message


@pytest.mark.parametrize(
    "host", ["127\u30020\u30020\u30021", "\uff11\uff12\uff17.0.0.1", "loc\u24d0lhost", "127%2E0.0.1"]
)
async def test_no_spelling_of_this_machine_is_taken_for_another(
    nginx: Nginx, tmp_path: Path, host: str
) -> None:
    """The web library reads full stops and digits of other scripts as ours, after the rules have seen the host."""
    nginx.write("in/good", b"good")
    plain = TransferSettings(access=AccessRules(), limits=settings().limits)
    refused = await refusal(fetcher(plain), tmp_path, f"http://{host}:{nginx.port}/in/good")
    assert refused.code in (REFUSED, "FILE_UNAVAILABLE")
    assert not (tmp_path / "f").exists()
