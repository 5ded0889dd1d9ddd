"""What is said of isolation is what a trial finds."""

from datetime import UTC, datetime

import pytest

from wms.cli import payload_isolation
from wms.cli.payload_isolation import IsolationHere, isolation_here, isolation_warning, reported_words
from wms.cli.why import _explain
from wms.messages.replies import JobWhy, SiteLine


def test_a_system_without_isolation_says_that_it_was_asked_for() -> None:
    assert isolation_here("none") == IsolationHere("as asked for", "as asked for")


def test_the_trial_has_the_word() -> None:
    # It depends on the machine; a trial that fails to run would say so.
    assert "could not be found out" not in isolation_here("auto").text()


def test_a_trial_that_cannot_run_is_no_isolation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_isolation, "CHECK_SECONDS", 0.0)
    assert isolation_here("auto").payloads == "it could not be found out: TimeoutExpired"


@pytest.mark.parametrize(
    ("payloads", "pilots", "said"),
    [
        ("", "", "jobs sent directly are refused"),
        ("", "no ids", "their pilots can read this system's keys (no ids)"),
        ("no mounts", "", "not isolated here (no mounts): they can read each other's files"),
        ("no mounts", "no ids", "they can read this system's keys and each other's files"),
    ],
)
def test_it_is_told_what_jobs_can_read(payloads: str, pilots: str, said: str) -> None:
    assert said in IsolationHere(payloads, pilots).text()


def test_a_word_of_a_newer_pilot_is_shown_as_it_is() -> None:
    assert "its own files and processes alone" in reported_words("namespaces")
    assert "under an account of its own" in reported_words("account")
    assert "plain processes" in reported_words("none")
    assert "sent directly" in reported_words("direct")
    assert reported_words("enclave") == "enclave"


@pytest.mark.parametrize(("word", "told"), [("none", 1), ("direct", 1), ("account", 0), ("", 0)])
def test_why_tells_of_isolation_where_there_is_none_alone(
    word: str, told: int, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = JobWhy(
        query_id="q", client="c", job_id=7, state="Done", code="DONE", summary="Done", isolation=word
    )
    _explain(answer, 3)
    assert ("isolation" in capsys.readouterr().out) == bool(told)


def test_elements_without_isolation_are_named() -> None:
    def element(ce: str, *isolation: str, fresh: bool = True) -> SiteLine:
        now = datetime.now(UTC)
        return SiteLine(
            site="S",
            ce=ce,
            dispatcher="local",
            advertised_at=now,
            expires_at=now,
            fresh=fresh,
            ad={},
            pilots=0,
            running_jobs=0,
            isolation=isolation,
        )

    safe = [element("safe", "account"), element("unknown"), element("gone", "none", fresh=False)]
    assert isolation_warning(safe) == ""
    bare = [element(f"ce{n}", "namespaces", "none") for n in range(5)]
    assert isolation_warning([*safe, *bare]).startswith(
        "warning: at S/ce0, S/ce1, S/ce2 and 2 more payloads run"
    )
