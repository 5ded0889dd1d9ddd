"""ClassAds: expressions and ads read, pairs evaluated for the first time and again, two ads that look at each other, and memory.

`python -m bench.classads --ads 1000 --expressions 500`. Each expression is evaluated over each ad; the answers are held against
the same rule in Python.
"""

import time
from collections.abc import Callable
from typing import Any

import psutil

from bench.measuring import Figures, machine, run
from bench.validity import InvalidError
from wms.classad.ad import Ad
from wms.classad.explain import failing
from wms.classad.expression import Expression
from wms.classad.match import matches, satisfied_by
from wms.classad.reduce import reduce

TAGS = [f"VO-lhcb-release-{n}" for n in range(20)]


def resource(number: int) -> dict[str, Any]:
    """Return an ad's values, of a GLUE size."""
    return {
        "GlueCEUniqueID": f"ce{number:04}.example.org:2119/jobmanager-pbs-long",
        "GlueHostMainMemoryRAMSize": 1_000 + number % 64 * 500,
        "GlueCEPolicyMaxCPUTime": 1_000 * (1 + number % 50),
        "GlueHostApplicationSoftwareRunTimeEnvironment": TAGS[: 1 + number % 20],
        "GlueCEStateStatus": "Production" if number % 10 else "Draining",
        **{f"GlueOther{n}": f"value {n} of {number}" for n in range(40)},
    }


def requirement(number: int) -> str:
    """Return one of as many different requirements."""
    return (
        f'other.GlueCEStateStatus == "Production" && other.GlueHostMainMemoryRAMSize >= {1_000 + number * 60} && '
        f'member("{TAGS[number % 20]}", other.GlueHostApplicationSoftwareRunTimeEnvironment) && '
        f"other.GlueCEPolicyMaxCPUTime > {number}"
    )


def fits(number: int, values: dict[str, Any]) -> bool:
    """Tell by the same rule in Python."""
    return (
        values["GlueCEStateStatus"] == "Production"
        and values["GlueHostMainMemoryRAMSize"] >= 1_000 + number * 60
        and TAGS[number % 20] in values["GlueHostApplicationSoftwareRunTimeEnvironment"]
        and values["GlueCEPolicyMaxCPUTime"] > number
    )


def rate(count: int, work: Callable[[], object]) -> float:
    """Return how many a processor second, of so many that the work does."""
    began = time.process_time()
    work()
    return float(f"{count / (time.process_time() - began):.3g}")


def checked(expressions: list[Expression], ads: list[Ad], values: list[dict[str, Any]]) -> None:
    """Hold the answers against the rule in Python."""
    for number, expression in enumerate(expressions):
        if satisfied_by(expression, ads) != [fits(number, each) for each in values]:
            raise InvalidError(f"expression {number} is not what it is in Python")


async def measure(*, ads: int, expressions: int, rounds: int) -> Figures:
    values = [resource(number) for number in range(ads)]
    made: list[Ad] = []
    figures: Figures = {"machine": machine("none")}
    found = {"ads_made_of_values": rate(ads, lambda: made.extend(Ad.of(each) for each in values))}
    texts = [ad.text for ad in made]
    found["ads_read"] = rate(ads, lambda: [Ad.parse(text) for text in texts])
    asked: list[Expression] = []
    sources = [requirement(number) for number in range(expressions)]
    found["expressions_read"] = rate(
        expressions, lambda: asked.extend(Expression.parse(each) for each in sources)
    )
    found["expressions_read_again"] = rate(expressions, lambda: [Expression.parse(each) for each in sources])
    # The first time, expressions are compiled and ads' values handed to the library.
    found["pairs_first"] = rate(ads * expressions, lambda: [satisfied_by(each, made) for each in asked])
    checked(asked, made, values)
    process = psutil.Process()
    before = process.memory_info().rss
    found["pairs_again"] = rate(
        ads * expressions * rounds,
        lambda: [satisfied_by(each, made) for _ in range(rounds) for each in asked],
    )
    grown = process.memory_info().rss - before
    found |= _two_sided(made[:200], sources[:50])
    views = [expression.other for expression in asked]
    found["views"] = rate(ads, lambda: [ad.view(views[0]) for ad in made])
    return {
        **figures,
        "a_cpu_second": found,
        "bytes_a_pair": round(grown / (ads * expressions * rounds), 3),
        "distinct_views": len({ad.view(views[0]) for ad in made}),
    }


def _two_sided(ads: list[Ad], sources: list[str]) -> dict[str, float]:
    """Measure matches of jobs with resources that look at them, what is left, and why not."""
    jobs = [
        Ad.parse(f'[VO = "vo{number}"; Requirements = {text} && other.Open]')
        for number, text in enumerate(sources)
    ]
    rule = Expression.parse('member(other.VO, {"vo1", "vo2"})')
    resources = [
        Ad.of({**resource(number), "Requirements": rule, "Open": rule}) for number in range(len(ads))
    ]
    pairs = len(jobs) * len(resources)
    return {
        "matches_of_ads_that_look_at_each_other": rate(
            pairs, lambda: [matches(j, r) for j in jobs for r in resources]
        ),
        "reductions": rate(len(jobs) * 20, lambda: [reduce(_of(j), r) for j in jobs for r in resources[:20]]),
        "explanations": rate(len(jobs) * 20, lambda: [failing(j, r) for j in jobs for r in resources[:20]]),
    }


def _of(job: Ad) -> Expression:
    assert job.requirements is not None
    return job.requirements


if __name__ == "__main__":
    run("classads", measure, ads=1_000, expressions=500, rounds=2)
