"""A process hangs when its sign of life stays the same for too long under eyes that look all the time."""

from collections.abc import Iterator

from wms.embedded.hang import HUNG_AFTER_SECONDS, HangDetector


def looks(detector: HangDetector, signs: dict[str, object], begin: float, end: float) -> Iterator[list[str]]:
    at = begin
    while at <= end:
        yield detector.look(signs, at)
        at += 2


def test_it_is_found_once_when_its_sign_stays_the_same() -> None:
    found = [names for names in looks(HangDetector(), {"matcher": 7}, 0, HUNG_AFTER_SECONDS + 6) if names]
    assert found == [["matcher"]]


def test_it_is_not_found_while_its_sign_changes() -> None:
    detector = HangDetector()
    assert not any(detector.look({"matcher": at}, at) for at in range(0, 100, 2))


def test_a_new_process_has_the_whole_time() -> None:
    detector = HangDetector()
    assert not any(looks(detector, {"matcher": (1, 0)}, 0, 14))
    assert not any(looks(detector, {"matcher": (2, 0)}, 16, 30))


def test_after_a_sleep_of_the_machine_all_begin_anew() -> None:
    detector = HangDetector()
    assert not any(looks(detector, {"matcher": 7}, 0, 14))
    assert detector.look({"matcher": 7}, 1_000) == []
    assert detector.look({"matcher": 7}, 1_002) == []


def test_one_of_which_nothing_was_heard_meanwhile_begins_anew() -> None:
    detector = HangDetector()
    assert not any(looks(detector, {"matcher": 7}, 0, 14))
    assert detector.look({}, 16) == []
    assert detector.look({"matcher": 7}, 18) == []
