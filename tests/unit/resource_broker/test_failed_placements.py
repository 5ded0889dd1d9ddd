"""For how long the broker avoids elements at which placements of a job failed."""

from datetime import UTC, datetime, timedelta

import pytest

from services.resource_broker.failed_placements import (
    PAUSE_SECONDS,
    FailedPlacement,
    avoided,
    failed_placements,
)
from wms.broker.placement import PlacementFault
from wms.db.candidate import FailedAtPlace
from wms.ids import CeId, JobId

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
A, B = CeId("A", "ce"), CeId("B", "ce")


def failure(place: CeId, code: PlacementFault) -> FailedAtPlace:
    return FailedAtPlace(job_id=JobId(7), place=place, code=code, reason=code, created_at=NOW)


@pytest.mark.parametrize(
    ("code", "pauses"),
    [
        (PlacementFault.UNREACHABLE, (1, 2)),
        (PlacementFault.NOT_ARRIVED, (0, 1)),
        (PlacementFault.RESERVATION_LOST, (0, 1)),
        (PlacementFault.NOT_TOGETHER, (0, 0)),
        (PlacementFault.REFUSED, (None, None)),
    ],
)
def test_each_further_failure_at_an_element_makes_the_pause_longer(
    code: PlacementFault, pauses: tuple[int | None, ...]
) -> None:
    found = failed_placements([failure(A, code), failure(A, code)])
    assert [each.again_at for each in found] == [
        None if pause is None else NOW + timedelta(seconds=pause * PAUSE_SECONDS) for pause in pauses
    ]


def test_failures_at_another_element_do_not_count() -> None:
    found = failed_placements(
        [failure(A, PlacementFault.UNREACHABLE), failure(B, PlacementFault.UNREACHABLE)]
    )
    assert {each.again_at for each in found} == {NOW + timedelta(seconds=PAUSE_SECONDS)}


def test_an_element_is_avoided_until_its_pause_is_over() -> None:
    failed = (FailedPlacement(A, "REFUSED"), FailedPlacement(B, "UNREACHABLE", NOW))
    assert avoided(failed, NOW - timedelta(seconds=1)) == {A, B}
    assert avoided(failed, NOW) == {A}
