"""The health of a service, judged by its heartbeats: whether each partition is served, and further problems. Pure functions."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from wms.bus.probe import UNSERVED_AFTER_SECONDS, ConsumerHealth, ProbeHealth
from wms.bus.progress import STALLED_AFTER_SECONDS

SHOWN = 3
"""The greatest number of problems of a service that a table shows; JSON has all of them."""
HOLD_LIMIT_MS = 50.0
"""The most processor time in milliseconds that one callback may keep an event loop. Longer holds are logged, and told as texts."""
HIDDEN = frozenset({"lag", "handled", "partitions", "probes", "troubles", "sent", "offers_open", "loop"})
"""The facts of a heartbeat that are not shown as texts, because they have columns of their own or are summarised elsewhere."""


class PartitionLine(msgspec.Struct, frozen=True, kw_only=True):
    """The health of one partition of one consumer, by its probes and its reader."""

    consumer: str
    topic: str
    partition: int
    round_trip_ms: float | None = None
    silent_seconds: float | None = None
    """Seconds since a probe came back; None if no instance reads the partition."""
    lag: int = 0
    served: bool = True
    problem: str = ""
    busy_seconds: float = 0.0
    """For how many seconds the partition has waited for its current batch, if that makes progress. This is not a problem."""


class LoopHold(msgspec.Struct, frozen=True, kw_only=True):
    """One time in which a callback kept its event loop, so that nothing else of the process was served."""

    name: str
    """The task or the request whose callback it was."""
    processor_ms: float
    """The processor time of the callback, in milliseconds. Holds are judged by it, as a busy machine adds to the other time alone."""
    ms: float
    """The time from begin to end of the callback, in milliseconds."""
    at: float
    """When it ended, in seconds since 1970."""


class LoopHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The longest holds of a service's event loop; None: no callback took over 5 ms."""

    last_minute: LoopHold | None = None
    since_start: LoopHold | None = None

    def in_words(self) -> str:
        """Return a text on the longest hold of the last minute if it was too long; else empty."""
        hold = self.last_minute
        if hold is None or hold.processor_ms < HOLD_LIMIT_MS:
            return ""
        return (
            f"its loop was held for {hold.processor_ms:.0f} ms ({hold.ms:.0f} ms by the clock): {hold.name}"
        )


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """The last heartbeat of one instance of a service."""

    service: str
    alive: bool
    pid: int
    started_at: datetime
    heartbeat_at: datetime
    health: dict[str, Any]

    def kind(self) -> tuple[str, str]:
        """Return which instances do the same work: those of one service, and of the advertisers those of one owner of a token."""
        return self.service, self.health.get("owner", "")

    def lag(self) -> int:
        """Return the number of messages that wait for the instance."""
        return sum(self.health.get("lag", {}).values())

    def handled(self) -> int:
        """Return the number of messages that the instance has handled, without probes."""
        told = self.health.get("probes", {})
        mine = self.health.get("handled", {})
        return sum(max(0, count - told.get(name, {}).get("passed", 0)) for name, count in mine.items())

    def loop(self) -> LoopHealth:
        """Return the longest holds of the instance's event loop."""
        return msgspec.convert(self.health.get("loop", {}), LoopHealth)

    def facts(self) -> list[str]:
        """Return the facts in the heartbeat that have no column of their own, as texts. Facts with the value 0 or no value are left out."""
        return [
            f"{name} {_short(value)}" for name, value in self.health.items() if value and name not in HIDDEN
        ]


def _short(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)[:40]


def partitions(beats: Sequence[Heartbeat], now: datetime) -> list[PartitionLine]:
    """Return the health of all partitions of all consumers of a service, including those that no living instance reads."""
    lines: dict[tuple[str, int], PartitionLine] = {}
    whole: dict[str, ConsumerHealth] = {}
    living = [beat for beat in beats if beat.alive]
    for beat in living:
        readers = _readers(beat)
        for consumer, told in _told(beat).items():
            whole[consumer] = told
            for probe in told.probes:
                line = _line(consumer, told.topic, probe, readers.get((consumer, probe.partition), {}))
                # For a moment, two instances may both claim a partition; the one that serves it better is right.
                known = lines.get((consumer, probe.partition))
                if known is None or (line.served and not known.served):
                    lines[consumer, probe.partition] = line
    oldest = max(((now - beat.started_at).total_seconds() for beat in living), default=0.0)
    for consumer, told in whole.items():
        for number in range(told.partitions):
            lines.setdefault((consumer, number), _unassigned(consumer, told.topic, number, oldest))
    return [lines[key] for key in sorted(lines)]


def _told(beat: Heartbeat) -> dict[str, ConsumerHealth]:
    return msgspec.convert(beat.health.get("probes", {}), dict[str, ConsumerHealth])


def _readers(beat: Heartbeat) -> dict[tuple[str, int], Mapping[str, Any]]:
    told = beat.health.get("partitions", {})
    return {(consumer, each["partition"]): each for consumer, rows in told.items() for each in rows}


def _line(consumer: str, topic: str, probe: ProbeHealth, reader: Mapping[str, Any]) -> PartitionLine:
    problem, seconds = "", probe.silent_seconds
    busy = _busy_seconds(reader)
    if busy > STALLED_AFTER_SECONDS:
        problem = ""
    elif reader.get("stalled", False) and not reader.get("reading", True):
        problem = "no reader is open"
    elif not probe.is_served:
        problem = "no probe came back"
    elif reader.get("stalled", False):
        problem, seconds = "nothing was read", reader.get("served_seconds_ago", seconds)
    behind = (reader.get("end_offset") or 0) - (reader.get("next_offset") or 0)
    return PartitionLine(
        consumer=consumer,
        topic=topic,
        partition=probe.partition,
        round_trip_ms=probe.round_trip_ms,
        silent_seconds=seconds,
        lag=max(0, behind),
        served=not problem,
        problem=problem,
        busy_seconds=busy if busy > STALLED_AFTER_SECONDS else 0.0,
    )


def _busy_seconds(reader: Mapping[str, Any]) -> float:
    """Return the seconds since the start of a partition's batch if the batch makes progress; 0 otherwise."""
    stands_still = reader.get("step_seconds_ago", math.inf) > STALLED_AFTER_SECONDS
    return 0.0 if stands_still else float(reader.get("busy_seconds", 0.0))


def busy(lines: Iterable[PartitionLine]) -> str:
    """Return a text on the partition whose current batch has taken longest; empty if no partition waits for a batch."""
    longest = max(lines, key=lambda each: each.busy_seconds, default=None)
    if longest is None or not longest.busy_seconds:
        return ""
    return f"{longest.consumer} {longest.partition}: at one batch for {longest.busy_seconds:.0f} s"


def _unassigned(consumer: str, topic: str, number: int, up_seconds: float) -> PartitionLine:
    """Return the health of a partition that no instance reads.

    It counts as served while the service has been up for a few seconds only: instances then still divide the partitions.
    """
    served = up_seconds < UNSERVED_AFTER_SECONDS
    return PartitionLine(
        consumer=consumer,
        topic=topic,
        partition=number,
        served=served,
        problem="" if served else "nobody reads it",
    )


def problems(beats: Sequence[Heartbeat], lines: Iterable[PartitionLine]) -> list[str]:
    """Return all problems of a service as texts: first those of partitions, then those of loops, then silent advertisers by owner."""
    alike: dict[tuple[str, str], list[PartitionLine]] = {}
    for each in lines:
        if not each.served:
            alike.setdefault((each.consumer, each.problem), []).append(each)
    found = [_in_words(consumer, problem, mine) for (consumer, problem), mine in alike.items()]
    living = {beat.kind() for beat in beats if beat.alive}
    for beat in beats:
        if beat.alive:
            _, owner = beat.kind()
            whose = f"{owner}: " if owner else ""
            found += [f"{whose}{loop} {trouble}" for loop, trouble in beat.health.get("troubles", {}).items()]
    silent = {owner for beat in beats if beat.kind() not in living and (owner := beat.kind()[1])}
    return found + [f"{owner}: no heartbeat" for owner in sorted(silent)]


def _in_words(consumer: str, problem: str, lines: Sequence[PartitionLine]) -> str:
    numbers = ",".join(str(each.partition) for each in lines)
    longest = max((each.silent_seconds or 0.0 for each in lines), default=0.0)
    return f"{consumer} {numbers}: {problem}" + (f" for {longest:.0f} s" if longest else "")


def worst_round_trip(lines: Iterable[PartitionLine]) -> float | None:
    """Return the longest round trip of a service's probes in milliseconds; None if there is none.

    For a partition that is not served, the time since its last probe came back counts.
    """
    trips = [
        each.round_trip_ms if each.served else (each.silent_seconds or 0.0) * 1_000
        for each in lines
        if each.round_trip_ms is not None or not each.served
    ]
    return max((trip for trip in trips if trip is not None), default=None)


def summed_up(found: Sequence[str]) -> str:
    """Return the first `SHOWN` problems, and the number of further ones, as one text."""
    more = f"; {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(found[:SHOWN]) + more
