"""Probes are known to their sender alone, pass when the offset behind them is committed, and tell of silence."""

import zlib

import pytest

from wms.bus.probe import UNSERVED_AFTER_SECONDS, ProbeHealth, Probes
from wms.bus.reader import Message


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr("wms.bus.probe.time.monotonic", lambda: now[0])
    return now


def told(probes: Probes) -> tuple[ProbeHealth, ...]:
    return probes.health("t", 4).probes


def record(payload: bytes, partition: int = 0, offset: int = 7) -> Message:
    return Message(partition=partition, offset=offset, key=None, payload=payload, token="")


def test_each_partition_gets_one(clock: list[float]) -> None:
    keys, payloads = Probes().prepare([0, 2], 4)
    assert [zlib.crc32(key) % 4 for key in keys] == [0, 2]
    assert len(set(payloads)) == 2


def test_it_passes_when_the_offset_behind_it_is_committed(clock: list[float]) -> None:
    probes = Probes()
    _, (payload,) = probes.prepare([0], 4)
    clock[0] += 2
    assert probes.recognise(record(payload))
    probes.moved({0: 7})
    (health,) = told(probes)
    assert (health.round_trip_ms, health.silent_seconds) == (None, 2.0)
    clock[0] += 0.5
    probes.moved({0: 8})
    (health,) = told(probes)
    assert (health.round_trip_ms, health.silent_seconds) == (2_500.0, 0.0)


def test_a_partition_without_probes_for_long_is_not_served(clock: list[float]) -> None:
    probes = Probes()
    probes.prepare([0], 4)
    clock[0] += UNSERVED_AFTER_SECONDS
    assert all(each.is_served for each in told(probes))
    clock[0] += 0.2
    assert not any(each.is_served for each in told(probes))


def test_one_that_was_forged_repeated_or_moved_proves_nothing(clock: list[float]) -> None:
    probes = Probes()
    _, (zero, one) = probes.prepare([0, 1], 4)
    forged = zero[:-4] + b"beef"
    assert probes.recognise(record(forged))
    assert probes.recognise(record(one, partition=0))
    probes.moved({0: 8})
    assert probes.recognise(record(zero, offset=9))
    probes.moved({0: 10})
    assert probes.recognise(record(zero, offset=11)), "seen a second time, it is no message either"
    clock[0] += 20
    probes.moved({0: 12})
    first, second = told(probes)
    assert first.silent_seconds == 20
    assert second.round_trip_ms is None


@pytest.mark.parametrize("payload", [b"", b"{}", b"wms.probe ", b"wms.probe " + b"0" * 33, b"x" * 42])
def test_what_is_no_probe_is_a_message(payload: bytes) -> None:
    assert not Probes().recognise(record(payload))


def test_what_is_remembered_is_bounded(clock: list[float]) -> None:
    probes = Probes()
    payloads = [probes.prepare([0], 1)[1][0] for _ in range(1_000)]
    assert len(probes._partitions[0].sent) <= 8
    assert probes.recognise(record(payloads[-1]))
    probes.moved({0: 8})
    assert told(probes)[0].round_trip_ms == 0
