"""The matching rules word for word: slow, obvious, sharing no code with the index. Only tests use it."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import classad2

from wms.matching.grouping import Requirements
from wms.site import Resource

WHERE = ("sites", "banned_sites", "min_ram_mb", "max_ram_mb", "min_disk_mb")
FIELDS = (
    "owner", "owner_group", "vo", "setup", "cpu_segment", "submit_pools", "pilot_types", "grid_ces", "grid_middlewares",
    "platforms", "job_types", "tags", "requirements", "rank", "attributes", "certificate_subject", "fqans",
)  # fmt: skip


@dataclass
class Queue:
    requirements: Requirements
    jobs: dict[int, float] = field(default_factory=dict)
    """User priority by job id."""


@dataclass(frozen=True)
class Share:
    job_share: float = 1000.0
    job_sharing: bool = False
    background: bool = False


# --- section 2 ------------------------------------------------------------------------------------


def wild(value):
    return value == "" or value.lower() == "any"


def lower(names):
    return {name.lower() for name in names}


def has(resource, tag):
    for n in range(1, resource.processors + 1):
        if tag.lower() == str(n) + "processors":
            return True
    if tag.lower() == "multiprocessor" and resource.processors > 1:
        return True
    # "any" stands for all but what its processors and its node are.
    of_node = tag.lower() in ("multiprocessor", "wholenode") or tag.lower().endswith("processors")
    if "any" in lower(resource.tags) and not of_node:
        return True
    return tag.lower() in lower(resource.tags)


def required_tags(resource):
    return set() if "any" in lower(resource.required_tags) else lower(resource.required_tags)


def bad(resource):
    return not all(has(resource, tag) for tag in required_tags(resource))


def fits(tq: Requirements, resource: Resource, ads=None) -> bool:  # noqa: C901 - the text, clause after clause
    if bad(resource):
        return False
    if tq.setup != resource.setup or tq.cpu_segment > resource.cpu_time or tq.vo != resource.vo:
        return False
    if not resource.generic:
        if tq.owner_group != resource.owner_group:
            return False
        if tq.owner != resource.owner and not resource.job_sharing:
            return False
    kind = "generic" if resource.generic else "private"
    if tq.pilot_types and kind not in lower(tq.pilot_types):
        names = lower(tq.pilot_types) - {"generic", "private"}
        if not names or (not wild(resource.pilot_type) and resource.pilot_type.lower() not in names):
            return False
    for wanted, value in (
        (tq.sites, resource.site),
        (tq.grid_ces, resource.grid_ce),
    ):
        if wanted and not wild(value) and value.lower() not in lower(wanted):
            return False
    if not wild(resource.site) and resource.site.lower() in lower(tq.banned_sites):
        return False
    for wanted, values in ((tq.platforms, resource.platforms), (tq.job_types, resource.job_types)):
        looked_at = values and not any(wild(value) for value in values)
        if wanted and looked_at and not lower(wanted) & lower(values):
            return False
    if lower(tq.job_types) & lower(resource.banned_job_types):
        return False
    if not all(has(resource, tag) for tag in tq.tags) or not required_tags(resource) <= lower(tq.tags):
        return False
    if tq.min_ram_mb > resource.memory_mb:
        return False
    if resource.disk_mb != 0 and tq.min_disk_mb > resource.disk_mb:
        return False
    job, element = job_ad(tq), resource_ad(resource, ads)
    if tq.requirements and evaluated(tq.requirements, job, element) is not True:
        return False
    said = site_says(resource, ads, "requirements")
    return not said or evaluated(said, element, job) is True


# --- both sides: the library's own evaluation of two ads that look at each other ------------------


def job_ad(tq):
    ad = classad2.ClassAd(tq.attributes or "[]")
    ad["Owner"], ad["OwnerGroup"], ad["VirtualOrganisation"] = tq.owner, tq.owner_group, tq.vo
    ad["CPUTime"], ad["Tags"] = tq.cpu_segment, list(tq.tags)
    if tq.job_types:
        ad["JobType"] = tq.job_types[0]
    if tq.min_ram_mb:
        ad["MinRAM"] = tq.min_ram_mb
        ad["ImageSize"] = 1024 * tq.min_ram_mb
    if tq.certificate_subject:
        ad["CertificateSubject"] = tq.certificate_subject
    if tq.fqans:
        ad["VOMS_FQAN"], ad["VOMS_FQANs"] = tq.fqans[0], list(tq.fqans)
    return ad


def resource_ad(resource, ads):
    ad = classad2.ClassAd()
    for name, text in site_says(resource, ads, "attributes", {}).items():
        ad[name] = classad2.ExprTree(of_library(text))
    for name, said in (("Site", resource.site), ("GridCE", resource.grid_ce), ("MaxRAM", resource.memory_mb)):
        if said:
            ad[name] = said
    ad["Tags"] = list(resource.tags)
    return ad


def site_says(resource, ads, what, nothing=""):
    """What the ad of the resource's element says, of tables by site and element."""
    return (ads or {}).get((resource.site, resource.grid_ce), {}).get(what, nothing)


def of_library(text):
    return text.replace("other.", "TARGET.").replace("my.", "MY.")


def evaluated(text, own, other):
    return classad2.ExprTree(of_library(text)).eval(own, other)


def rank(tq, resource, ads):
    said = site_says(resource, ads, "rank")
    found = evaluated(said, resource_ad(resource, ads), job_ad(tq)) if said else 0
    return found if type(found) in (int, float, bool) else 0


# --- section 5 and running limits -----------------------------------------------------------------


def values(tq: Requirements, attribute):
    """Return the values that a job of the queue has of an attribute."""
    return {
        "owner": [tq.owner],
        "owner_group": [tq.owner_group],
        "vo": [tq.vo],
        "setup": [tq.setup],
        "job_type": [name.lower() for name in tq.job_types],
        "tag": [name.lower() for name in tq.tags],
        "any": [""],
    }[attribute]


def limited(tq: Requirements, site, ce, limits, running) -> bool:
    """Tell whether some limit keeps a queue's jobs back: `running` are (requirements, site, ce) of the jobs there are.

    Each limit that is reached excludes, whatever the others say.
    """
    for limit in limits:
        if limit.site not in (site, "*") or (limit.ce and limit.ce not in (ce, "*")):
            continue
        for value in values(tq, limit.attribute):
            if limit.value not in (value, "*") and limit.attribute != "any":
                continue
            alike = [
                there
                for there, at, on in running
                if at == site and (not limit.ce or on == ce) and value in values(there, limit.attribute)
            ]
            if len(alike) >= limit.most:
                return True
    return False


# --- section 4 ------------------------------------------------------------------------------------


def real(priority):
    if priority == 0:
        return 1e-5
    if priority >= 10:
        return 1e6
    return min(max(priority, 0.001), 10)


def plain_weights(queues: dict[int, Queue], shares: dict[tuple[str, str], Share]) -> dict[int, float]:
    waiting = {tq: queue for tq, queue in queues.items() if queue.jobs}
    mean = {tq: sum(map(real, q.jobs.values())) / len(q.jobs) for tq, q in waiting.items()}
    weights = {}
    for tq, queue in waiting.items():
        asks = queue.requirements
        share = shares.get((asks.vo, asks.owner_group), Share())
        group = [
            t
            for t, q in waiting.items()
            if (q.requirements.vo, q.requirements.owner_group) == (asks.vo, asks.owner_group)
        ]
        if share.job_sharing:
            entity, whole = group, share.job_share
        else:
            entity = [t for t in group if waiting[t].requirements.owner == asks.owner]
            whole = share.job_share / len({waiting[t].requirements.owner for t in group})
        if share.background and mean[tq] <= 0.1:
            weights[tq] = 0.001
            continue
        total = sum(mean[t] for t in entity if not (share.background and mean[t] <= 0.1))
        weights[tq] = max(0.001, whole * mean[tq] / total)
    return weights


def weights(queues, shares, seen) -> dict[int, float]:
    """The weights of the queues that a resource sees: a class seen in part has its whole weight."""
    plain = plain_weights(queues, shares)

    def kind(tq):
        asks = queues[tq].requirements
        said = (getattr(asks, name) for name in FIELDS)
        return tuple(
            tuple(sorted(lower(value)))
            if name.endswith("s") and name not in ("requirements", "attributes", "fqans")
            else value
            for name, value in zip(FIELDS, said, strict=True)
        )

    scaled = {}
    for tq in seen:
        whole = sum(weight for other, weight in plain.items() if kind(other) == kind(tq))
        part = sum(plain[other] for other in seen if kind(other) == kind(tq))
        scaled[tq] = plain[tq] * whole / part
    return scaled


# --- section 3 ------------------------------------------------------------------------------------


def by_random(things, weight: Callable[[int], float], rng: random.Random, law="dirac"):
    def key(thing):
        u = rng.random()
        return (u if law == "dirac" else -math.log(1 - u)) / weight(thing)

    return sorted(things, key=key)


def candidates(queues: dict[int, Queue], resource, shares, ads=None) -> dict[int, float]:
    """Return the queues to draw from, with their weights."""
    fitting = [tq for tq, queue in queues.items() if queue.jobs and fits(queue.requirements, resource, ads)]
    highest = max((queues[tq].requirements.cpu_segment for tq in fitting), default=0)
    fitting = [tq for tq in fitting if queues[tq].requirements.cpu_segment == highest]
    liked = {tq: rank(queues[tq].requirements, resource, ads) for tq in fitting}
    fitting = [tq for tq in fitting if liked[tq] == max(liked.values())]
    return weights(queues, shares, fitting)


def draw(queues: dict[int, Queue], heavy: dict[int, float], rng: random.Random, law="dirac"):
    """Return (job id, queue id, user priority)."""
    tq = by_random(list(heavy), heavy.__getitem__, rng, law)[0]
    jobs = queues[tq].jobs
    first = by_random(list(jobs), lambda job: real(jobs[job]), rng, law)[0]
    ten = sorted(job for job in jobs if jobs[job] == jobs[first])[:10]
    return rng.choice(ten), tq, jobs[first]


# --- statistics -----------------------------------------------------------------------------------


def first_of(weights) -> list[float]:
    """The exact probabilities that each of U/w comes first: the integral of w_i * prod over the others of (1 - w_j t)."""
    parts = [Fraction(weight) for weight in weights]
    end = 1 / max(parts)
    chances = []
    for i, own in enumerate(parts):
        polynomial = [own]
        for j, other in enumerate(parts):
            if j != i:
                shifted = [Fraction(0), *(-other * c for c in polynomial)]
                polynomial = [a + b for a, b in zip([*polynomial, Fraction(0)], shifted, strict=True)]
        chances.append(float(sum(c * end ** (k + 1) / (k + 1) for k, c in enumerate(polynomial))))
    return chances


def chi_square_p(statistic: float, freedom: int) -> float:
    """P(chi-square of `freedom` degrees >= statistic): the upper regularised gamma function by series or fraction."""
    a, x = freedom / 2, statistic / 2
    if x <= 0:
        return 1.0
    front = math.exp(-x + a * math.log(x) - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while term > total * 1e-15:
            n += 1
            term *= x / n
            total += term
        return 1 - total * front
    b = x + 1 - a
    c, d = 1e300, 1 / b
    h = d
    for i in range(1, 10_000):
        an = -i * (i - a)
        b += 2
        d = 1 / (an * d + b)
        c = b + an / c
        h *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return front * h


def goodness(observed, probabilities) -> float:
    """The p-value of counts against probabilities; categories expected fewer than 5 times are put together."""
    total = sum(observed)
    cells, rest = [], [0.0, 0.0]
    for seen, chance in zip(observed, probabilities, strict=True):
        cell = rest if chance * total < 5 else [0.0, 0.0]
        cell[0] += seen
        cell[1] += chance * total
        if cell is not rest:
            cells.append(cell)
    if rest[1] > 0:
        cells.append(rest)
    elif rest[0]:
        return 0.0
    return chi_square_p(sum((o - e) ** 2 / e for o, e in cells), len(cells) - 1)


def homogeneity(one, other) -> float:
    """The p-value that two rows of counts come from one distribution."""
    n, m = sum(one), sum(other)
    statistic, cells = 0.0, 0
    for a, b in zip(one, other, strict=True):
        if a + b:
            cells += 1
            for seen, size in ((a, n), (b, m)):
                expected = (a + b) * size / (n + m)
                statistic += (seen - expected) ** 2 / expected
    return chi_square_p(statistic, cells - 1)
