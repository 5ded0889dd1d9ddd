"""Which mover moves a URL."""

import pytest

from wms.errors import Rejected
from wms.transfer.access_rules import REFUSED, AccessRules
from wms.transfer.file_url import FileUrl
from wms.transfer.movers import Movers, TransferSettings
from wms.transfer.web_mover import WebMover


def test_schemes_of_one_kind_share_a_mover() -> None:
    movers = Movers(TransferSettings())
    first, second = (movers.mover(FileUrl.parse(f"{scheme}://h.example/a")) for scheme in ("https", "davs"))
    assert isinstance(first, WebMover)
    assert first is second


@pytest.mark.parametrize(
    ("scheme", "words"), [("gopher", "no mover knows the scheme"), ("root", "this site allows")]
)
def test_other_schemes_are_refused(scheme: str, words: str) -> None:
    movers = Movers(TransferSettings(access=AccessRules(schemes=["gopher"])))
    with pytest.raises(Rejected, match=words) as refused:
        movers.mover(FileUrl.parse(f"{scheme}://h.example/a"))
    assert refused.value.code == REFUSED
