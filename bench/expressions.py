"""What jobs require of computing elements and elements of jobs, in the manner of a grid in production.

Jobs choose by software, memory, operating system, storage nearby, benchmarks, queues and sites; elements by whose jobs they are, of
which kind and how long. The same seed, the same expressions. Plain values, as in `bench.workload`.
"""

import random
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from bench.workload import OWNERS, VO, Pilot, Queue, Shape

SOFTWARE = tuple(f"VO-lhcb-release-{n:02d}" for n in range(40))
STORES = tuple(f"srm{n:02d}.example.org" for n in range(20))
SYSTEMS = ("AlmaLinux", "RedHatEnterprise", "CentOS")
PROJECTS = ("sim11", "stripping", "calibration", "analysis")
OTHERS = {f"GlueOther{n:02d}": f"value {n}" for n in range(30)}
"""What an element tells besides: nobody looks at it."""
RUNTIME = "other.GlueHostApplicationSoftwareRunTimeEnvironment"
NEAR = "other.GlueCESEBindGroupSEUniqueID"


class Element(msgspec.Struct, frozen=True, kw_only=True):
    """A computing element: what it tells, and what it says of jobs."""

    site: str
    ce: str
    attributes: dict[str, Any]
    requirements: str = ""
    rank: str = ""


# --- jobs ------------------------------------------------------------------------------------------------------------


def with_expressions(queues: Sequence[Queue], distinct: int, seed: int = 5) -> list[Queue]:
    """Return the queues with what their jobs require: nine in ten something, of so many distinct things, a few most often."""
    rng = random.Random(seed)
    wanted, weights = requirements(distinct), [1 / (n + 10) for n in range(distinct)]
    return [
        replace(
            queue,
            requirements=rng.choices(wanted, weights)[0] if rng.random() < 0.9 else "",
            rank=rng.choice(RANKS) if rng.random() < 0.3 else "",
            attributes=_attributes(rng) if rng.random() < 0.2 else {},
        )
        for queue in queues
    ]


def requirements(distinct: int, seed: int = 8) -> list[str]:
    """Return so many requirements of jobs."""
    rng = random.Random(seed)
    texts: dict[str, None] = {}
    while len(texts) < distinct:
        texts[_requirements(rng)] = None
    return list(texts)


RANKS = (
    "-other.GlueCEStateEstimatedResponseTime",
    "other.GlueCEStateFreeCPUs",
    "other.GlueHostBenchmarkSI00",
    f'member("{STORES[0]}", {NEAR}) ? 100 : -other.GlueCEStateWaitingJobs',
)


def _attributes(rng: random.Random) -> dict[str, Any]:
    return {"Project": rng.choice(PROJECTS), "Urgency": rng.randint(1, 5)}


def _requirements(rng: random.Random) -> str:
    usual = ['other.GlueCEStateStatus == "Production"'] if rng.random() < 0.8 else []
    return " && ".join(usual + [make(rng) for make in rng.sample(TERMS, rng.randint(1, 3))])


TERMS = (
    lambda rng: f'member("{SOFTWARE[min(int(rng.expovariate(0.15)), 39)]}", {RUNTIME})',
    lambda rng: f"other.GlueHostMainMemoryRAMSize >= {rng.choice((1_000, 2_000, 4_000, 8_000))}",
    lambda rng: f'other.GlueHostOperatingSystemName == "{rng.choice(SYSTEMS)}"',
    lambda rng: (
        f'regexp("^({rng.choice(SYSTEMS)}|{rng.choice(SYSTEMS)})$", other.GlueHostOperatingSystemName)'
    ),
    lambda rng: f'member("{rng.choice(STORES)}", {NEAR})',
    lambda rng: f"other.GlueHostBenchmarkSI00 >= {rng.choice((500, 1_000, 1_500, 2_000))}",
    lambda rng: f"other.GlueCEPolicyMaxCPUTime >= {rng.choice((720, 1_440, 2_880))}",
    lambda rng: f"other.GlueCEStateWaitingJobs < {rng.choice((100, 500, 1_000))}",
    lambda _: "(other.GlueCEStateFreeCPUs > 0 || other.GlueCEStateEstimatedResponseTime < 3600)",
    lambda rng: f'other.Site != "LCG.Site{rng.randrange(20):04d}.org"',
    lambda rng: f'!regexp("ce0{rng.randrange(4)}.*:8443", other.GlueCEUniqueID)',
    lambda _: "(my.Urgency =?= undefined || other.GlueHostMainMemoryRAMSize >= 500 * my.Urgency)",
)


# --- computing elements ----------------------------------------------------------------------------------------------


def make_elements(shape: Shape, count: int, seed: int = 6) -> list[Element]:
    """Return so many elements, spread over the sites: two in three require something of jobs, two in five like some better."""
    rng = random.Random(seed)
    found = []
    for n in range(count):
        attributes = _told(rng, n % shape.sites, n // shape.sites)
        found.append(
            Element(
                site=shape.site(n % shape.sites),
                ce=f"ce{n // shape.sites:02d}",
                attributes=attributes,
                requirements=" && ".join(make(rng) for make in rng.sample(DEMANDS, rng.choice((0, 1, 2)))),
                rank=rng.choice(LIKES) if rng.random() < 0.4 else "",
            )
        )
    return found


def later(element: Element, rng: random.Random) -> Element:
    """Return what an element tells a minute later."""
    return replace(element, attributes=element.attributes | _state(rng))


DEMANDS = (
    lambda rng: f'other.Owner != "{rng.choice(OWNERS)[0]}"',
    lambda _: f'member(other.VirtualOrganisation, {{"{VO}", "atlas"}})',
    lambda _: 'other.OwnerGroup != "lhcb_admin"',
    lambda _: "(other.ImageSize =?= undefined || other.ImageSize <= 1024 * my.GlueHostMainMemoryRAMSize)",
    lambda rng: f'other.JobType != "type{rng.randrange(24):02d}"',
    lambda rng: f"other.Urgency =!= {rng.randint(1, 5)}",
    lambda rng: f'(other.Project =?= undefined || other.Project != "{rng.choice(PROJECTS)}")',
    lambda _: "other.CPUTime <= 60 * my.GlueCEPolicyMaxCPUTime",
)
LIKES = (
    'other.OwnerGroup == "lhcb_prod" ? 10 : 0',
    'other.Owner == "user05" || other.Owner == "user07"',
    "-other.CPUTime",
    "other.Urgency",
    'other.JobType == "type03" ? 2 : other.JobType == "type04" ? 1 : 0',
    '(other.Project == "calibration" ? 5 : 0) + (other.OwnerGroup == "lhcb_mc" ? 1 : 0)',
)


def _told(rng: random.Random, site: int, ce: int) -> dict[str, Any]:
    """Return what an element tells, at the size of a GLUE ad."""
    return {
        "GlueCEUniqueID": f"ce{ce:02d}.site{site:04d}.example.org:8443/slurm-long",
        "GlueCEStateStatus": "Production" if rng.random() < 0.95 else "Draining",
        "GlueCEPolicyMaxCPUTime": rng.choice((1_440, 2_880, 5_760)),
        "GlueHostMainMemoryRAMSize": rng.choice((2_000, 4_000, 8_000, 16_000)),
        "GlueHostBenchmarkSI00": rng.choice((900, 1_200, 1_600, 2_400)),
        "GlueHostOperatingSystemName": SYSTEMS[site % 3],
        "GlueHostApplicationSoftwareRunTimeEnvironment": list(SOFTWARE[: rng.randint(10, 40)]),
        "GlueCESEBindGroupSEUniqueID": [STORES[site % 20], *rng.sample(STORES, 2)],
        **_state(rng),
        **OTHERS,
    }


def _state(rng: random.Random) -> dict[str, Any]:
    """Return what changes from minute to minute."""
    return {
        "GlueCEStateFreeCPUs": rng.choice((0, 3, 17, 250)) + rng.randrange(3),
        "GlueCEStateWaitingJobs": rng.randrange(600),
        "GlueCEStateRunningJobs": rng.randrange(5_000),
        "GlueCEStateEstimatedResponseTime": rng.randrange(86_400),
    }


def at_elements(pilots: Sequence[Pilot], elements: Sequence[Element]) -> list[Pilot]:
    """Return the pilots, each on one of the elements of its site."""
    each = -(-len(elements) // len({element.site for element in elements}))
    moved = {id(pilot): replace(pilot, ce=f"ce{int(pilot.ce[2:]) % each:02d}") for pilot in pilots}
    return [moved[id(pilot)] for pilot in pilots]
