"""An advertiser's token: who it says that its bearer is, and of which sites it may speak."""

import time
from pathlib import Path

import pytest

from services.advertiser.site_token import SiteToken
from wms.auth.keys import generate_keys, load_key
from wms.auth.token import Claims, mint
from wms.errors import Rejected


def test_who_we_are_is_as_our_token_says(tmp_path: Path) -> None:
    generate_keys(tmp_path)
    token = SiteToken(str(tmp_path / "token"))
    with pytest.raises(Rejected, match="No such file"):
        token.bearer()
    claims = Claims(kind="site", owner="i", sites=frozenset({"*.nordic.org"}))
    (tmp_path / "token").write_text(mint(load_key(tmp_path / "sites.pem"), claims, 60, time.time()))
    assert token.bearer().sites == {"*.nordic.org"}
    assert token.others({"umea.nordic.org", "cern"}) == {"cern"}
    (tmp_path / "token").write_text("no token")
    with pytest.raises(Rejected, match="not a token"):
        token.bearer()
