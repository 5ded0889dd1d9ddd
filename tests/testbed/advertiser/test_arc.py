"""The provider of ARC asks a real element."""

from pathlib import Path

import pytest

from services.advertiser.arc import Arc
from services.advertiser.config import ArcQueues
from tests.middleware import Sites
from tests.testbed.advertiser.providers import queue, slurm
from wms.errors import Unavailable

pytestmark = pytest.mark.testbed


def arc(testbed: Sites, **credential: str) -> Arc:
    """Return the provider of the ARC element."""
    told = testbed.told["arc"]
    return Arc(ArcQueues(site="nordic", url=told["url"], authorities=told["authority"], **credential))  # type: ignore[arg-type] # as said


@pytest.mark.parametrize(("setting", "credential"), [("proxy_file", "proxy"), ("token_file", "token")])
async def test_the_queues_of_an_arc_element_are_elements(
    testbed: Sites, setting: str, credential: str
) -> None:
    told = testbed.told["arc"]
    seen = {each.offer.ce: each for each in await arc(testbed, **{setting: told[credential]}).read()}
    assert seen.keys() == set(told["queues"])
    main = seen["main"]
    assert main.offer.fault() is None
    assert main.offer.slots == len(testbed.told["alpha"]["nodes"]) * testbed.told["alpha"]["cores_per_node"]
    assert main.offer.vos == ("testbed",)
    assert main.glue.lrms_type.casefold() == "slurm"
    assert main.glue.max_wall_seconds == (await queue(slurm(testbed))).glue.max_wall_seconds


async def test_arc_tells_strangers_nothing(testbed: Sites, tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        await arc(testbed, proxy_file=str(tmp_path / "none.pem")).read()
    told = testbed.told["arc"]
    unbelieving = ArcQueues(site="nordic", url=told["url"], token_file=told["token"])
    with pytest.raises(Unavailable, match="certificate"):
        await Arc(unbelieving).read()
