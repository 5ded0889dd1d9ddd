"""PBS and LSF as the advertiser reads them, against fakes of their tools: calls, elements, and honest errors."""

from pathlib import Path

import pytest

from tests.services.advertiser.batch_systems import lsf, pbs
from wms.errors import Rejected, Unavailable


@pytest.mark.parametrize("kind", ["pbs", "lsf"])
async def test_a_server_that_is_away_is_unavailable_and_says_why(
    tmp_path: Path, data: Path, kind: str
) -> None:
    away = pbs(tmp_path, data, server="away") if kind == "pbs" else lsf(tmp_path, data, configuration="away")
    with pytest.raises(Unavailable, match=r"cannot connect to server away|LSF is down"):
        await away.read()


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("pbs/torque-queues.txt", "pbs"),
        ("pbs/torque-nodes.txt", "pbs"),
        ("lsf/bqueues.json", "lsf"),
        ("lsf/bhosts.json", "lsf"),
    ],
)
async def test_what_is_not_understood_is_refused_whole(
    tmp_path: Path, data: Path, file: str, kind: str
) -> None:
    (data / file).write_text("a word from somebody else\n")
    with pytest.raises(Rejected):
        await (pbs if kind == "pbs" else lsf)(tmp_path, data).read()
