"""A site's mapping script from its configuration to the pilots that are sent, and to what users and operators are told."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from services.pilot_submitter.ce_endpoints import CeEndpoints
from services.pilot_submitter.config import Config
from services.pilot_submitter.configured_endpoints import configured_endpoints_of
from services.pilot_submitter.pilot_factory import PilotFactory
from services.pilot_submitter.pilot_tracking import PilotTracking
from services.pilot_submitter.provisioning import Provisioning
from tests.contract.dispatch.test_bubblewrap import LONG, program, skip_without_sandbox
from tests.services.job_manager.queries.explained import why
from tests.services.world import World
from wms.auth.keys import generate_keys, load_key
from wms.auth.orders import OrderKeys
from wms.dispatch.bubblewrap import Bubblewrap
from wms.dispatch.mapping_script import WAITS
from wms.errors import Rejected
from wms.messages import replies
from wms.provisioning.plan import PilotCaps
from wms.site import ComputingElement

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROOT = Path(__file__).parents[3]
SCRATCH = "other.ScratchMB >= 2000"


def config(place: Path, script: Path, *, seconds: float = LONG, **more: Any) -> Config:
    """A configuration with one element of Slurm, `A/ce`, and its script, which may take longer here than a site may let it."""
    told = {
        "auth": {"jwks": ""},
        "pilots": {"directory": str(place / "pilots"), "keys": str(place / "keys")},
        "sandboxes": {"url": "file:///x"},
        "slurm": [{"site": "A", "ce": "ce", "directory": str(place / "slurm"), "lifetime_seconds": 10**6, "mapping_script": {
            "path": str(script), "attributes": ["ScratchMB"], "options": ["--tmp"], **more,
        }}],
    }  # fmt: skip
    read = msgspec.convert(told, Config)
    assert read.slurm[0].mapping_script is not None
    patient = replace(read.slurm[0].mapping_script, seconds=seconds)
    return replace(read, slurm=[replace(read.slurm[0], mapping_script=patient)])


class Submitter:
    """A pilot submitter with one element, whose batch system refuses all pilots: there is none."""

    def __init__(self, world: World, place: Path, settings: Config) -> None:
        generate_keys(place / "keys")
        maker = PilotFactory(settings, load_key(place / "keys" / "pilots.pem"), OrderKeys([b"k" * 32]))
        self.world = world
        self.endpoints: CeEndpoints = configured_endpoints_of(settings, {"PATH": os.environ["PATH"]})
        following = PilotTracking(world.db, self.endpoints)
        self._provisioning = Provisioning(world.db, self.endpoints, maker, PilotCaps(pilots=8), following)

    async def advertise(self) -> None:
        element = ComputingElement(
            site="A", ce="ce", slots=4, max_cpu_time=10**6, setup="default", dispatcher="slurm"
        )
        await self.world.sql(
            "insert into ad (site, ce, element, advertised_at, expires_at)"
            " values ('A', 'ce', $1::text::jsonb, now(), now() + interval '1 h')",
            msgspec.json.encode(element).decode(),
        )

    async def pilots(self) -> list[str]:
        """Make a plan; return the reasons of all pilots that were ever sent."""
        await self._provisioning.provide()
        return [row["reason"] for row in await self.world.sql("select reason from pilot order by pilot_id")]

    async def planned(self) -> str:
        """What `wms site show` says of the plan."""
        (row,) = await self.world.sql("select decision::text as decision from ce_plan")
        return str(row["decision"])

    async def told(self, job_id: Any) -> replies.CeVerdict:
        """What `wms why` says of the element."""
        (element,) = (await why(self.world, job_id)).elements
        return element


@pytest.fixture(autouse=True)
def _sandboxed(tmp_path: Path) -> None:
    skip_without_sandbox(tmp_path)


async def submitter(world: World, place: Path, text: str) -> Submitter:
    """A submitter whose script is of the shell, with an ad of its element."""
    it = Submitter(world, place, config(place, program(place, text)))
    await it.advertise()
    return it


ANSWERS = """
read question
case $question in *'"text":"scratchmb >= 2000"'*) ;; *) exit 9 ;; esac
echo '{"options": ["--tmp=2G"], "asked": ["scratchmb >= 2000"]}'
"""


async def test_pilots_wait_for_the_script_and_then_are_asked_for_as_it_says(
    the_world: World, tmp_path: Path
) -> None:
    it = await submitter(the_world, tmp_path, ANSWERS)
    assert await it.pilots() == []
    [job_id] = await the_world.submitted(requirements=SCRATCH)
    assert await it.pilots() == []
    assert (await it.told(job_id)).avoid == WAITS
    assert WAITS in await it.planned()
    await it.endpoints.ask_scripts()
    (reason,) = await it.pilots()
    words = "scratchmb >= 2000 as --tmp=2G by the site's script"
    assert f"asks for {words}" in reason
    told = await it.told(job_id)
    assert (told.fits, told.avoid, told.forwarded) == (True, "", (words,))


FAILURES = {
    "hangs": ("exec sleep 86400", "has not ended within 1 s"),
    "garbage": ("echo garbage", "prints no answer"),
    "too much": ("exec yes", "printed over 16,384 bytes"),
    "fails": ("echo the table is broken >&2; exit 1", "failed with exit code 1: the table is broken"),
    "another option": (
        """echo '{"options": ["--wrap=id"], "asked": []}'""",
        "gives an option that is refused: wrap is not among the script's options",
    ),
    "another line": (
        r"""printf '%s' '{"options": ["--tmp=1\n#SBATCH --uid=0"], "asked": []}'""",
        "gives an option that is refused",
    ),
    "forks": ("bomb() { bomb | bomb & bomb; }; bomb", ""),
    "secrets": ("""cat /etc/shadow "$HOME/.ssh/id_rsa" /proc/1/environ""", "failed with exit code 1"),
}


@pytest.mark.parametrize("what", FAILURES)
async def test_a_script_that_fails_keeps_pilots_for_its_requirements_away_and_no_others(
    the_world: World, tmp_path: Path, what: str
) -> None:
    text, why_not = FAILURES[what]
    # Those that may hang need not be waited for; no other passes its bound of time, however busy the machine is.
    seconds = 1.0 if what in ("hangs", "forks") else LONG
    it = Submitter(the_world, tmp_path, config(tmp_path, program(tmp_path, text), seconds=seconds))
    await it.advertise()
    [picky] = await the_world.submitted(requirements=SCRATCH)
    await it.pilots()
    await it.endpoints.ask_scripts()
    assert await it.pilots() == []
    told = (await it.told(picky)).avoid
    assert told.startswith("its mapping script ")
    assert told != WAITS
    assert why_not in told
    assert told in msgspec.json.decode(await it.planned())["reasons"][0]
    await the_world.submitted()
    assert len(await it.pilots()) == 1


async def test_a_script_that_cannot_be_sandboxed_is_refused_with_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = config(tmp_path, program(tmp_path, "true"))
    with pytest.raises(Rejected, match="mapping script of A/ce is no program"):
        configured_endpoints_of(config(tmp_path, tmp_path / "none"), {})
    with pytest.raises(Rejected, match="x y"):
        configured_endpoints_of(config(tmp_path, tmp_path / "program", options=["x y"]), {})
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Rejected, match="mapping script of A/ce is never run without bubblewrap") as refused:
        configured_endpoints_of(settings, {})
    assert "install bubblewrap" in refused.value.remedy


async def test_where_bubblewrap_vanishes_the_element_is_avoided(
    the_world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = await submitter(the_world, tmp_path, ANSWERS)
    [job_id] = await the_world.submitted(requirements=SCRATCH)
    await it.pilots()
    with monkeypatch.context() as changed:
        changed.setenv("PATH", str(tmp_path))
        await it.endpoints.ask_scripts()
    assert await it.pilots() == []
    assert "never run without bubblewrap" in (await it.told(job_id)).avoid


# --- the example of the operator's page ----------------------------------------------------------------------------------


def example() -> dict[str, Any]:
    """The configuration in the operator's page."""
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    _, _, after = page.partition("    [slurm.mapping_script]\n")
    lines = [line[4:] for line in after.partition("\n\n")[0].splitlines()]
    return tomllib.loads("\n".join(lines))


async def test_the_example_of_the_operators_page_answers_as_it_says(tmp_path: Path) -> None:
    python = Path("/usr/bin/python3")
    if not python.exists():
        pytest.skip("THE SAMPLE OF A MAPPING SCRIPT NOT TESTED: this machine lacks /usr/bin/python3")
    told, sample = example(), tmp_path / "map_hosts.py"
    sample.write_bytes((ROOT / "deploy" / "map_hosts.py").read_bytes())
    sample.chmod(0o755)
    assert Path(told["path"]).name == sample.name
    endpoints = configured_endpoints_of(config(tmp_path, sample, **{**told, "path": str(sample)}), {})
    ((endpoint, mapping),) = endpoints.asking()
    assert {each.lower() for each in told["attributes"]} <= mapping.forwarded
    assert endpoint.script is not None
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    blocks = re.findall(r"^    (\{.*?\})$", page, re.MULTILINE | re.DOTALL)
    question, answer = (next(each for each in blocks if key in each) for key in ('"request"', '"options"'))
    printed = await Bubblewrap(sample, (), 120.0).run(question)
    assert msgspec.json.decode(printed) == msgspec.json.decode(answer)
    ours = {key: value for key, value in msgspec.json.decode(question).items() if key not in ("site", "ce")}
    assert not isinstance(mapping.read(msgspec.json.encode(ours).decode(), printed), str)  # type: ignore[attr-defined]
