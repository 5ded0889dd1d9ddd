"""What is said of isolation is what the agent's own check finds."""

import pytest

from wms.cli import payload_isolation
from wms.cli.payload_isolation import isolation_fault, isolation_words, reported_words


def test_a_system_without_isolation_says_that_it_was_asked_for() -> None:
    assert isolation_fault("none") == "as asked for"


def test_the_check_of_the_agent_has_the_word() -> None:
    fault = isolation_fault("auto")
    # It depends on the machine; a check that fails to run would say so.
    assert "could not be found out" not in fault


def test_a_check_that_cannot_run_is_no_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_isolation, "CHECK_SECONDS", 0.0)
    assert isolation_fault("auto") == "it could not be found out: TimeoutExpired"


def test_it_is_told_what_jobs_can_read() -> None:
    assert "not isolated here (no namespaces)" in isolation_words("no namespaces")
    assert "jobs are isolated" in isolation_words("")


def test_a_word_of_a_newer_pilot_is_shown_as_it_is() -> None:
    assert "its own files and processes alone" in reported_words("namespaces")
    assert "plain processes" in reported_words("none")
    assert reported_words("enclave") == "enclave"
