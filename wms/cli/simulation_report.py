"""The report of `wms simulate`: scenarios side by side, each compared with the first."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from wms.cli.printing import note, show, show_json, show_table

if TYPE_CHECKING:
    from wms.simulation.comparison import ComparedFigure, ScenarioResult
    from wms.simulation.figures import OwnerFigures
    from wms.simulation.workload import Workload

SHOWN = 12
REASONS_SHOWN = 5


def _time(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if abs(seconds) >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _part(value: float) -> str:
    return f"{value:.1%}"


def _count(value: float) -> str:
    return f"{value:,.0f}"


ROWS: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("wait, mean", "wait_mean", _time),
    ("wait, 50 %", "wait_p50", _time),
    ("wait, 90 %", "wait_p90", _time),
    ("wait, 99 %", "wait_p99", _time),
    ("jobs an hour", "jobs_per_hour", lambda value: f"{value:,.1f}"),
    ("makespan", "makespan", _time),
    ("slots used", "used", _part),
    ("Jain's index", "jain", lambda value: f"{value:.3f}"),
    ("off the shares", "deviation", _part),
    ("done", "done", _count),
    ("failed", "failed", _count),
    ("can never run", "never", _count),
    ("held for ever", "left", _count),
    ("attempts", "attempts", _count),
    ("pilots", "pilots", _count),
)


def show_report(
    results: "Sequence[ScenarioResult]", workload: "Workload", seeds: int, *, as_json: bool
) -> None:
    """Print the results of the scenarios side by side, or as one JSON document if `as_json` is True. Each is compared with the first.

    `seeds` is how often each scenario was simulated.
    """
    if as_json:
        show_json({"jobs": len(workload.arrivals), "seeds": seeds, "scenarios": results})
        return
    show_table(
        (f"{len(workload.arrivals):,} JOBS", *(f"{each.name}>" for each in results)),
        [
            (title, *(_cell(each.values[name], results[0].values[name], text) for each in results))
            for title, name, text in ROWS
        ],
    )
    show()
    _show_groups(results)
    show()
    _show_sites(results)
    _show_never(results)
    _say_what_is_noise(len(results), seeds)


def _cell(value: "ComparedFigure", first: "ComparedFigure", text: Callable[[float], str]) -> str:
    spread = f" ±{text(value.spread)}" if value.spread else ""
    return f"{text(value.mean)}{spread}{_against(value, first)}"


def _against(value: "ComparedFigure", first: "ComparedFigure") -> str:
    if value.verdict in ("", "same"):
        return ""
    if value.verdict == "noise":
        return "  ~"
    mark = "?" if value.verdict == "unknown" else ""
    return f"  {(value.mean - first.mean) / first.mean:+.0%}{mark}" if first.mean else f"  +{mark}"


def _show_groups(results: "Sequence[ScenarioResult]") -> None:
    lines = [{line.name: line for line in each.first.groups} for each in results]
    names = list(dict.fromkeys(name for each in lines for name in each))
    show_table(
        ("GROUP", "JOBS>", *(f"{each.name}: wait 50 %, 90 %, off its share>" for each in results)),
        [(name, _jobs(name, lines), *(_group(each.get(name)) for each in lines)) for name in names[:SHOWN]],
    )
    if len(names) > SHOWN:
        show(f"and {len(names) - SHOWN} groups more; --json has all")


def _jobs(name: str, lines: "Sequence[dict[str, OwnerFigures]]") -> str:
    return _count(next(each[name].jobs for each in lines if name in each))


def _group(line: "OwnerFigures | None") -> str:
    if line is None:
        return "-"
    waits = f"{_time(line.waits.p50)}, {_time(line.waits.p90)}" if line.waits else "-, -"
    return f"{waits}, {line.deviation or 0.0:+.1%}"


def _show_sites(results: "Sequence[ScenarioResult]") -> None:
    sites = [{line.name: line for line in each.first.sites} for each in results]
    names = list(dict.fromkeys(name for each in sites for name in each))
    show_table(
        ("SITE", *(f"{each.name}: slots, used>" for each in results)),
        [
            (
                name,
                *(
                    f"{each[name].slots:,}, {_part(each[name].used)}" if name in each else "-"
                    for each in sites
                ),
            )
            for name in names[:SHOWN]
        ],
    )
    if len(names) > SHOWN:
        show(f"and {len(names) - SHOWN} sites more; --json has all")


def _show_never(results: "Sequence[ScenarioResult]") -> None:
    for each in results:
        for never in each.first.never_why[:REASONS_SHOWN]:
            show(
                f"\n{each.name}: {never.jobs:,} jobs of VO {never.vo} can never run: {'; '.join(never.reasons)}"
            )


def _say_what_is_noise(scenarios: int, seeds: int) -> None:
    if scenarios > 1 and seeds > 1:
        note(
            f"~ within noise of the first scenario over {seeds} seeds (paired, 95 %); tables of groups and sites are of the first seed"
        )
    elif scenarios > 1:
        note("? one seed cannot tell a difference from chance: --seeds 5 does")
