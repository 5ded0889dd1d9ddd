"""Signals in words, and the exit codes that shells make of them."""

import signal

import pytest

from wms.job.signal_words import signal_hint, signal_name, signal_of_exit_code


@pytest.mark.parametrize(
    ("code", "number"), [(137, 9), (139, 11), (134, 6), (143, 15), (128, 0), (3, 0), (0, 0), (255, 0)]
)
def test_a_shells_exit_code_stands_for_a_signal(code: int, number: int) -> None:
    assert signal_of_exit_code(code) == number


def test_signals_have_names_and_some_a_cause() -> None:
    assert signal_name(signal.SIGSEGV) == "signal 11 (SIGSEGV)"
    assert signal_name(99) == "signal 99"
    assert "memory runs out" in signal_hint(9)
    assert signal_hint(signal.SIGTERM) == ""
