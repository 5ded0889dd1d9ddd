"""`docs/performance.md`: what the benchmarks found, from their results in `bench/results/`."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from docs.pages import plot
from docs.pages.structs import head, row

RESULTS = Path(__file__).parents[2] / "bench" / "results"
PLOT = "performance-scaling.svg"

Found = dict[str, Any]

LEAD = """# Performance

Every figure here was measured by a benchmark of this repository, which checks what it measures and fails when a match is false, a job
comes twice or a claim is lost. `python -m bench.NAME --json --keep` measures anew and keeps the result; `make docs` writes this page.
Servers are durable, settings the defaults; generators of load share the cores with what they measure. «Python» and «Postgres»: their
processor time.
"""


def page(results: Path = RESULTS) -> str:
    """Return the page: a section for each result that there is."""
    parts = [LEAD]
    for name, title, section in SECTIONS:
        found = _read(results, name)
        if found is not None:
            parts.append("\n".join([f"## {title}", "", _measured(found), "", *section(found), ""]))
    return "\n".join(parts).rstrip("\n") + "\n"


def scaling_plot(results: Path = RESULTS) -> str:
    """Return the plot of what a match costs, by the number of waiting jobs."""
    found = _read(results, "scaling")
    assert found is not None, "bench/results/scaling.json is missing: python -m bench.scaling --json --keep"
    sizes = found["sizes"]
    costs = {
        name: [(each["waiting_jobs"], each["cpu_us_per_match"][name.lower()]) for each in sizes]
        for name in ("Python", "Postgres")
    }
    both = [(x, y + z) for (x, y), (_, z) in zip(costs["Python"], costs["Postgres"], strict=True)]
    return plot.lines("Cost of a match", "waiting jobs", "µs of processor time", {"both": both, **costs})


def _read(results: Path, name: str) -> Found | None:
    path = results / f"{name}.json"
    return msgspec.json.decode(path.read_bytes()) if path.exists() else None


def _measured(found: Found) -> str:
    machine = found["machine"]
    options = " ".join(
        f"--{name.replace('_', '-')} {value}" for name, value in found["parameters"].items() if value != ""
    )
    postgres = f", Postgres {machine['postgres']}" if "postgres" in machine else ""
    return (
        f"`python -m bench.{found['benchmark']} {options}`, on {machine['cores']} cores,"
        f" Python {machine['python']}{postgres}."
    )


# --- sections -------------------------------------------------------------------------------------


def _matching(found: Found) -> Iterator[str]:
    ours, theirs = found["ours"], found.get("dirac")
    insertion = ours["insertion"]
    rows: tuple[tuple[str, float, str], ...] = (
        ("matches a second", ours["matches_per_second"], "matching"),
        ("jobs inserted a second, in bulk", insertion["jobs_per_second"], "insertion"),
        ("the same, one by one", insertion["one_job_a_message"]["jobs_per_second"], "insertion"),
    )
    yield from head("", "ours", *([f"DIRAC {theirs['version']}"] if theirs else []))
    for name, mine, kind in rows:
        yield row(name, _number(mine), *([_number(theirs[kind]["per_second"])] if theirs else []))
    if theirs:
        yield ""
        yield from _beside_dirac(theirs, found["ratio"])
    cpu = ours["cpu_us_per_match"]
    yield ""
    yield (
        f"Ours: a batch in {ours['batch_p50_ms']:g} ms (p99 {ours['batch_p99_ms']:g} ms); a match costs {cpu['python']:g} µs in"
        f" Python and {cpu['postgres']:g} µs in Postgres. The index of all jobs was loaded in {ours['index_seconds']:g} s."
    )
    if "drain" in found:
        yield ""
        yield from _drain(found["drain"])


def _drain(drain: Found) -> Iterator[str]:
    yield "What a match costs as the waiting jobs are taken, a tenth of them a row:"
    yield ""
    yield from head("jobs taken before", "matches/s", "Python µs", "Postgres µs")
    taken = 0
    for each in drain["tenths"]:
        yield row(_number(taken), *_costs(each["matches_per_second"], each["cpu_us_per_match"]))
        taken += each["matches"]
    times = drain["last_to_first"]
    yield row("last row to first", *_costs(times["matches_per_second"], times))


def _costs(matches: float, cpu: Found) -> tuple[str, str, str]:
    return _number(matches), f"{cpu['python']:g}", f"{cpu['postgres']:g}"


def _beside_dirac(theirs: Found, ratio: Found) -> Iterator[str]:
    matching = theirs["matching"]
    yield (
        f"The two systems worked in turn, {len(ratio['matching']['pairs'])} rounds each. We did {_ratio(ratio['matching'])} as many"
        f" matches, and {_ratio(ratio['insertion'])} as many insertions in bulk: the median of the pairs of rounds, and each pair."
        f" DIRAC is its real `TaskQueueDB` over MariaDB, which has no insertion in bulk. Of 1, 2, 4 and 8 clients the best number works:"
        f" {matching['clients']} match, a match in {matching['p50_ms']:g} ms (p99 {matching['p99_ms']:g} ms), and"
        f" {theirs['insertion']['clients']} insert."
    )


def _ratio(found: Found) -> str:
    """Return the median of the pairs, and each pair, from the smallest to the largest."""
    pairs = ", ".join(f"{each:g}" for each in sorted(found["pairs"]))
    return f"{found['median']:g} times ({pairs})"


def _two_sided(found: Found) -> Iterator[str]:
    plain, both = found["plain"], found["two_sided"]
    rows: tuple[tuple[str, Callable[[Found], str]], ...] = (
        ("matches a second", lambda each: _number(each["matches_per_second"])),
        ("a match in Python, µs", lambda each: f"{each['cpu_us_per_match']['python']:g}"),
        ("a match in Postgres, µs", lambda each: f"{each['cpu_us_per_match']['postgres']:g}"),
        ("a batch, p50 and p99, ms", lambda each: f"{each['batch_p50_ms']:g}, {each['batch_p99_ms']:g}"),
        ("index loaded, s", lambda each: f"{each['index_seconds']:g}"),
        (
            f"first {_number(both['first_requests'])} requests, s of Python",
            lambda each: f"{each['first_requests_cpu_seconds']:g}",
        ),
    )
    yield from head("", "plain queues", "with both sides' expressions")
    for name, value in rows:
        yield row(name, value(plain), value(both))
    parameters = found["parameters"]
    yield ""
    yield (
        f"Two matchers over one database answered the same requests in turn. One knew what the queues ask for alone, the other"
        f" {both['distinct_requirements']} distinct requirements of jobs as well, and the requirements and ranks of"
        f" {parameters['elements']} elements, of which a tenth advertised something new before each run. It matched"
        f" {found['ratio']:.2f} times as fast (by run: {', '.join(f'{each:.2f}' for each in found['all_ratios'])}). Every match was"
        f" held against what HTCondor's library says of the two ads. {_number(both['pairs_evaluated_cold'])} distinct pairs of an"
        f" expression and what it saw were evaluated for the first {_number(both['first_requests'])} requests, each once, and"
        f" {_number(both['pairs_evaluated'] - both['pairs_evaluated_cold'])} for the {_number(both['requests'])} after them."
    )


def _scaling(found: Found) -> Iterator[str]:
    yield f"![What a match costs by the number of waiting jobs]({PLOT})"
    yield ""
    yield from head(
        "waiting jobs", "task queues", "sites", "tags", "matchers", "matches/s", "Python µs", "Postgres µs", "batch p99 ms",
        "index loaded s", "database MiB",
    )  # fmt: skip
    lhcb = [found["lhcb"]] if found["lhcb"] else []
    for each in (*found["sizes"], *found["matchers"], *lhcb):
        yield row(
            _number(each["waiting_jobs"]),
            _number(each["task_queues"]) + (" (LHCb's shape)" if each in lhcb else ""),
            _number(each["sites"]),
            str(each["tags"]),
            str(each["matchers"]),
            _number(each["matches_per_second"]),
            f"{each['cpu_us_per_match']['python']:g}",
            f"{each['cpu_us_per_match']['postgres']:g}",
            f"{each['batch_p99_ms']:g}",
            f"{each['index_seconds']:g}",
            _number(each["database_mib"]),
        )


BROKERED = {
    "saturated": "as many as there can be, one slot a request",
    "saturated_16_slots": "the same, sixteen slots",
    "saturated_sweeps": "the same, of sweeps, whose jobs have no rows before",
    "rate_5000": "5,000 requests a second, after a second of the same",
    "rate_50": "50 requests a second, after a second of the same",
    "lives": "whole lives (match, accept, run, done), sixteen slots",
    "lives_one_by_one": "whole lives, one slot",
}


def _brokered(found: Found) -> Iterator[str]:
    yield from head(
        "load", "matches/s", "jobs done/s", "offer p50 ms", "offer p99 ms", "µs of all processes a match"
    )
    for name, title in BROKERED.items():
        each = found.get(name)
        if each:
            yield row(
                title,
                _number(each["matches_per_second"]),
                _number(each["lives_per_second"]) if "lives_per_second" in each else "",
                f"{each['offer_p50_ms']:g}",
                f"{each['offer_p99_ms']:g}",
                _number(sum(each["cpu_us_per_match"].values())),
            )


def _lives(found: Found) -> Iterator[str]:
    theirs = found.get("awa")
    if theirs is None:
        yield f"{_number(found['lives_per_second'])} whole lives a second."
        return
    yield from head("", "ours", f"awa {theirs['version']}")
    yield row("whole lives a second", _number(found["lives_per_second"]), _number(theirs["lives_per_second"]))
    yield ""
    yield (
        f"The two worked in turn, each with a Postgres of the same settings. We did {_ratio(found['ratio'])} as many: the median of the"
        f" pairs of rounds, and each pair. Ours go through the broker, are matched, and begin once their lease is granted; theirs,"
        f" {theirs['jobs_a_round']:,} a round, are taken by {theirs['workers']:,} workers of one process, and matched to nothing."
    )


SUBMISSION = {"separate": "separate descriptions", "array": "one array", "list": "one list of values"}


def _submission(found: Found) -> Iterator[str]:
    yield from head("what", "jobs/s", "seconds")
    for name, title in SUBMISSION.items():
        each = found[name]
        yield row(title, _number(each["jobs_per_second"]), f"{each['seconds']:g}")
    costs = ", ".join(f"{name} {cost:g}" for name, cost in found["cpu_us_per_separate_job"].items())
    yield ""
    yield f"µs of processor time a separate job: {costs}."


def _gateway(found: Found) -> Iterator[str]:
    single, turn, bulk = found["singles"], found["one_by_one"], found["bulk"]
    yield from head("submissions over HTTP", "jobs/s", "p50, p99 ms", "µs of all processes a job")
    for title, each in (("one a request, many users", single), ("one a request, one after another", turn)):
        costs = f"{sum(each['cpu_us_per_job'].values()):,.0f}" if "cpu_us_per_job" in each else ""
        yield row(title, _number(each["per_second"]), f"{each['p50_ms']:g}, {each['p99_ms']:g}", costs)
    costs = f"{sum(bulk['cpu_us_per_job'].values()):,.0f}"
    yield row("a stream of lines", _number(bulk["jobs_per_second"]), "", costs)
    streams = found["dashboards"]
    yield ""
    yield (
        f"{streams['open']:,} open streams of events took {streams['cores_without_events']:g} processors at rest, and "
        f"{streams['cores_with_events']:g} at {_number(streams['events_per_second'])} events a second."
    )


def _gateway_pages(found: Found) -> Iterator[str]:
    yield from head(f"a page of 50 of {found['rows']:,} jobs", "p50, p99 ms")
    for title, each in found["pages"].items():
        yield row(title, f"{each['p50_ms']:g}, {each['p99_ms']:g}")
    yield ""
    yield from head(f"a view of the dashboard, of {found['viewed_rows']:,} jobs", "first, p50 ms")
    for title, each in found["views"].items():
        yield row(title, f"{each['first_ms']:g}, {each['p50_ms']:g}")
    if "counts" in found:
        yield from _gateway_counts(found)


def _gateway_counts(found: Found) -> Iterator[str]:
    yield ""
    yield from head("a count", "jobs", "requests", "seconds", "longest request ms")
    for title, each in found["counts"].items():
        yield row(
            title, _number(each["jobs"]), each["requests"], f"{each['seconds']:g}", f"{each['longest_ms']:g}"
        )
    alone, beside = found["counting_in_a_loop"]["alone"], found["counting_in_a_loop"]["beside"]
    yield ""
    yield (
        f"The newest page took {alone['p50_ms']:g} ms (p99 {alone['p99_ms']:g} ms), and beside a user who counted "
        f"all jobs in a loop {beside['p50_ms']:g} ms (p99 {beside['p99_ms']:g} ms)."
    )


def _pilot_links(found: Found) -> Iterator[str]:
    yield from head("pilots", "matches/s", "requests/s", "offer p50, p99 ms", "µs of all processes a request")
    for title, name in (("over HTTPS, through the gateway", "https"), ("over Kafka", "kafka")):
        ordered = sorted(found[name], key=lambda each: float(each["matches_per_second"]))
        each = ordered[len(ordered) // 2]
        yield row(
            title,
            _number(each["matches_per_second"]),
            _number(each["requests_per_second"]),
            f"{each['offer_p50_ms']:g}, {each['offer_p99_ms']:g}",
            f"{sum(each['cpu_us_per_request'].values()):,.0f}",
        )
    ratio = found["https_to_kafka"]
    pairs = ", ".join(f"{each:g}" for each in ratio["pairs"])
    yield ""
    yield (
        f"Both kinds of pilots asked in turn, {len(ratio['pairs'])} rounds each: over HTTPS they were offered {ratio['median']:g} times "
        f"({pairs}) as many jobs. The table has the median round of each. Pilots over Kafka share a connection for each process, those over "
        "HTTPS have two each."
    )


def _churn(found: Found) -> Iterator[str]:
    yield from head("step", "Postgres µs a job, tenth by tenth of the run", "Python µs")
    for name, phase in found["phases"].items():
        yield row(
            name,
            " ".join(f"{each:.0f}" for each in phase["postgres_cpu_us"]),
            " ".join(f"{each:.0f}" for each in phase["python_cpu_us"]),
        )
    yield ""
    yield from head("table", "early: table, indexes MiB", "late: table, indexes MiB", "rows", "dead rows")
    for name, late in found["late"].items():
        early = found["early"].get(name, {"table_mib": 0, "index_mib": 0})
        yield row(
            f"`{name}`",
            f"{early['table_mib']:g}, {early['index_mib']:g}",
            f"{late['table_mib']:g}, {late['index_mib']:g}",
            _number(late["rows"]),
            _number(late["dead_rows"]),
        )


GRIDS = {"made": "made by chance", "trace": "LCG trace"}
PREDICTED = ("stage_in", "waiting", "execution", "stage_out", "delivery")


def _ranking(found: Found) -> Iterator[str]:
    there = [(title, found[name]) for name, title in GRIDS.items() if name in found]
    yield "Times to delivery on simulated grids, whose truth is known. Ratio: the broker's mean over the policy's; the goal is 0.75."
    yield (
        "The oracle knows each site's queue and speed, and how long each job runs. The late oracle knows the same, but queues of up to one"
        " period of ads ago, as the broker does. Both choose the best site for each job alone. Their ratio to the shortest queue tells how much"
        " there is to gain."
    )
    yield ""
    yield from head("grid", "policy", "mean s", "median s", "ratio", "by grid", "goal")
    for title, grid in there:
        yield from (row(title, *_policy(grid, name)) for name in grid["mean_seconds"])
    yield ""
    yield "Share of the broker's 90 % intervals that held the truth:"
    yield ""
    yield from head("grid", *(part.replace("_", "-") for part in PREDICTED))
    for title, grid in there:
        yield row(title, *(f"{grid['parts'][part]['covered']:.1%}" for part in PREDICTED))


def _policy(grid: Found, name: str) -> Iterator[str]:
    yield name
    yield _number(grid["mean_seconds"][name])
    yield _number(grid["median_seconds"][name])
    yield str(grid["ratio"].get(name, ""))
    yield " ".join(str(each) for each in grid["ratios_by_grid"].get(name, ()))
    yield grid["goal"].get(name, "")


THEIRS = {
    "without": ((9.4, 7.5, 12.5), (66.1, 64, 68.5), (15.4, 12, 19.5), (3.9, 2, 7), (5.2, 2.5, 8.5)),
    "with": ((11.4, 8.5, 16.5), (37.4, 32.5, 51), (33.3, 30, 38), (12.4, 6.5, 15.5), (5.5, 2.5, 10.5)),
}
"""The shares in the tables of Elmroth and Tordsson, 2005: average, least and greatest of five sets of 200 jobs, in percent."""


def _brokering_tables(found: Found) -> Iterator[str]:
    kind = "with" if "with" in found else "without"
    each = found[kind]
    yield from head(f"a job at its element, {kind} reservations", "ours: average, least, most %", "theirs")
    for (name, ours), theirs in zip(each["classes"].items(), THEIRS[kind], strict=True):
        yield row(name.replace("-inf s", " s and more"), _shares(ours), _shares(theirs))
    times, together = each["seconds"], each["together"]
    yield ""
    yield (
        f"Median {times['median']:g} s, p99 {times['p99']:g} s, longest {times['longest']:g} s. {_number(together['jobs'])} jobs of many"
        f" clients at once came to their elements at {together['submitted_per_second']:g} a second; theirs handled 40 a minute (0.67)."
        f" The machine's load was {each['load']:g}: above the number of cores, others used it too."
    )
    yield ""
    yield (
        f"As in Elmroth and Tordsson's evaluation (2005): {found['resources']} resources of 4 to 388 slots, {found['index_servers']} index"
        " servers, one above the others, whose answers are used for 30 s; each job submitted once the one before was at its element. They"
        " had a machine for the broker, one for agreements, and clusters elsewhere. Ours share the cores: ten Slurm clusters, an ARC element"
        " over another, and all services. Batch jobs sleep."
    )
    if kind == "with":
        yield ""
        yield (
            f"Slurm makes real reservations; ARC has none, so that a calendar of slots stands for its queues. {each['reserved']} of"
            f" {sum(each['places'].values())} jobs got a reservation one by one, {together['reserved']} of {together['jobs']} at once; the others"
            " were placed without, as no site had answered in time. After each set no reservation was left in Slurm's lists."
        )


def _shares(shares: Sequence[float]) -> str:
    return ", ".join(f"{each:g}" for each in shares)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


SECTIONS: tuple[tuple[str, str, Callable[[Found], Iterator[str]]], ...] = (
    ("matching", "Matching, beside DIRAC", _matching),
    ("two_sided", "Matching on both sides, beside plain queues", _two_sided),
    ("scaling", "How the cost grows", _scaling),
    ("brokered", "Through the embedded broker, all services running", _brokered),
    ("brokered-apache", "Through Apache Kafka, all services running", _brokered),
    ("lives", "Whole lives, beside a queue in Postgres", _lives),
    ("submission", "Acceptance", _submission),
    ("gateway", "Through the gateway", _gateway),
    ("gateway_pages", "Pages and views through the gateway", _gateway_pages),
    ("pilot_links", "Matches through the gateway, beside Kafka", _pilot_links),
    ("churn", "Jobs that come and go", _churn),
    ("ranking", "Ranking for the time to delivery", _ranking),
    ("brokering-without", "Brokering on real Slurm and ARC, without reservations", _brokering_tables),
    ("brokering-with", "Brokering on real Slurm and ARC, with reservations", _brokering_tables),
)
