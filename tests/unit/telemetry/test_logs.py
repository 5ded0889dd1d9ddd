"""No secret reaches the log: not by name, not by look, not inside lists, objects or errors, not when the process ends."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from wms.auth.keys import generate_keys, load_key
from wms.auth.token import Claims, mint
from wms.telemetry import logs

PASSWORD = "hunter2-Zx9"
URL = f"postgresql://wms:{PASSWORD}@db.example:5432/wms"


@pytest.fixture(scope="module")
def token(tmp_path_factory: pytest.TempPathFactory) -> str:
    keys = tmp_path_factory.mktemp("keys")
    generate_keys(keys)
    claims = Claims(kind="user", owner="alice", group="user", vo="lhcb")
    return mint(load_key(keys / "issuer.pem"), claims, 600.0, 1_770_000_000.0)


@pytest.fixture(scope="module")
def private_key(tmp_path_factory: pytest.TempPathFactory) -> str:
    keys = tmp_path_factory.mktemp("keys")
    generate_keys(keys)
    return (keys / "pilots.pem").read_text()


Written = Callable[[], str]


@pytest.fixture(params=["json", "console"])
def written(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Iterator[Written]:
    """Configure the logs, and put back all that this changes in the process; yields what gives all that was written."""
    pieces: list[str] = []

    def read() -> str:
        pieces.append(capsys.readouterr().err)
        return "".join(pieces)

    root = logging.getLogger()
    handlers, level, hook = root.handlers[:], root.level, sys.excepthook
    levels = {name: logging.getLogger(name).level for name in ("aiokafka", "asyncio")}
    logs.configure("test", "debug", as_json=request.param == "json")
    yield read
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, each in levels.items():
        logging.getLogger(name).setLevel(each)
    sys.excepthook = hook


class Holder:
    """Shows what it holds only when it is rendered."""

    def __init__(self, secret: str) -> None:
        self.secret = secret

    def __repr__(self) -> str:
        return f"Holder({self.secret!r})"


WAYS: dict[str, Callable[[str], dict[str, Any]]] = {
    "a value": lambda secret: {"said": secret},
    "inside a value": lambda secret: {"said": f"sent <{secret}> twice: {secret}"},
    "a list": lambda secret: {"said": [1, secret]},
    "a tuple of reprs": lambda secret: {"errors": (repr(ValueError(secret)),)},
    "deep inside": lambda secret: {"said": {"a": [{"b": ({"c": secret},)}]}},
    "deeper than is looked": lambda secret: {"said": [[[[[[[[[[[[secret]]]]]]]]]]]]},
    "bytes": lambda secret: {"said": secret.encode()},
    "bytes in a list": lambda secret: {"headers": [("x", secret.encode())]},
    "an object": lambda secret: {"said": Holder(secret)},
    "a set": lambda secret: {"said": {secret}},
    "an error": lambda secret: {"error": ValueError(secret)},
    "a key": lambda secret: {"said": {secret: 1}},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_token_is_never_written(written: Written, token: str, way: str) -> None:
    structlog.get_logger().info("sent", **WAYS[way](token))
    assert "sent" in written()
    for part in token.split("."):
        assert part not in written()


@pytest.mark.parametrize("way", WAYS)
def test_a_password_in_an_address_is_never_written(written: Written, way: str) -> None:
    structlog.get_logger().info("connecting", **WAYS[way](URL))
    assert PASSWORD not in written()
    assert "db.example" in written(), "where it went is no secret"


@pytest.mark.parametrize("way", WAYS)
def test_a_private_key_is_never_written(written: Written, private_key: str, way: str) -> None:
    structlog.get_logger().info("signing", **WAYS[way](private_key))
    for line in private_key.splitlines()[1:-1]:
        assert line not in written()


def test_a_secret_in_the_event_itself(written: Written, token: str) -> None:
    structlog.get_logger().info(f"got {token} for {URL}")
    assert token not in written()
    assert PASSWORD not in written()


@pytest.mark.parametrize(
    "name", ["token", "user_token", "password", "PGPASSWORD", "client_secret", "Authorization"]
)
def test_what_is_named_a_secret_is_one(written: Written, name: str) -> None:
    structlog.get_logger().info("read", **{name: "plain-words"}, inner={name: ["plain-words"]})
    assert "plain-words" not in written()
    assert written().count("***") == 2


def test_bound_context_is_cleaned(written: Written, token: str) -> None:
    structlog.get_logger().bind(said=token).info("one")
    with structlog.contextvars.bound_contextvars(said=URL):
        structlog.get_logger().info("two")
    assert token not in written()
    assert PASSWORD not in written()


def fail(secret: str) -> None:
    note = RuntimeError("handling failed")
    note.add_note(f"with {secret}")
    raise ExceptionGroup("several", [note, ValueError(secret)]) from ConnectionError(f"refused: {secret}")


def test_secrets_in_errors_are_never_written(written: Written, token: str, private_key: str) -> None:
    for secret in (token, URL, private_key):
        try:
            fail(secret)
        except ExceptionGroup as group:
            structlog.get_logger().exception("failed", errors=[repr(each) for each in group.exceptions])
    assert written().count("handling failed") >= 3, "the rest of the error is there"
    assert token.rpartition(".")[0] not in written()
    assert PASSWORD not in written()
    assert private_key.splitlines()[1] not in written()


def test_libraries_logs_are_cleaned_and_keep_their_errors(written: Written, token: str) -> None:
    try:
        fail(URL)
    except ExceptionGroup:
        logging.getLogger("asyncio").exception("task with %s died", token)
    assert "task with" in written()
    assert "ExceptionGroup" in written()
    assert token not in written()
    assert PASSWORD not in written()


CLEANED = {
    "postgresql://wms:pw@h/db": "postgresql://wms:***@h/db",
    "postgres://wms:p@s:s/w@rd@h/db": "postgres://wms:***@h/db",
    "postgresql://:pw@h": "postgresql://:***@h",
    "see postgresql://h/db?user=u&password=pw&x=1": "see postgresql://h/db?user=u&password=***&x=1",
    "host=h password=pw dbname=d": "host=h password=*** dbname=d",
    "https://user:pw@proxy:8080": "https://user:***@proxy:8080",
    "Authorization: Bearer abcdefgh12345": "Authorization: Bearer ***",
    "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl and more": "*** and more",
    "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0": "***",
}


@pytest.mark.parametrize("text", CLEANED)
def test_what_looks_like_a_secret_goes(text: str) -> None:
    assert logs.clean(text) == CLEANED[text]


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://127.0.0.1:5432/wms",
        "job 7 of alice@example.org waits in task queue 12: 3 ahead",
        "file:///srv/wms/sandboxes",
        "the bearer of bad news",
        "eyJ",
        "0f" * 32,
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert logs.clean(text) == text


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "piece",
    ["eyJ", "eyJaaaaa.", "a.", "a://a:", "://:", "Bearer ", "password =", "-----BEGIN PRIVATE KEY", " ", "@"],
)
def test_a_hostile_text_is_looked_through_in_no_time(piece: str) -> None:
    assert logs.clean(piece * (300_000 // len(piece)))


def test_a_line_of_json_stays_json(written: Written, token: str) -> None:
    structlog.get_logger().warning("both", url=URL, urls=[URL, "x@y"], mail="a@b", token=token)
    if written().startswith("{"):
        told = json.loads(written())
        assert told["url"] == "postgresql://wms:***@db.example:5432/wms"
        assert (told["mail"], told["urls"][1], told["token"]) == ("a@b", "x@y", "***")
        assert (told["service"], told["level"], told["event"]) == ("test", "warning", "both")


class Unspeakable:
    """Cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError(PASSWORD)


def test_what_cannot_be_rendered_costs_its_line_alone(written: Written) -> None:
    structlog.get_logger().error("broken", what=Unspeakable())
    assert "broken" in written()
    assert "RuntimeError" in written()
    assert PASSWORD not in written()


LOGGED_BEFORE = structlog.get_logger()


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("gone", ["closed", "none"])
def test_a_log_that_cannot_be_written_ends_nothing(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    LOGGED_BEFORE.error("while it is open")
    (stream := io.StringIO()).close()
    monkeypatch.setattr(sys, "stderr", stream if gone == "closed" else None)
    LOGGED_BEFORE.error("afterwards")


def test_a_logger_writes_to_the_present_standard_error(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    LOGGED_BEFORE.error("to the first")
    later = io.StringIO()
    monkeypatch.setattr(sys, "stderr", later)
    LOGGED_BEFORE.error("to the later")
    assert "to the later" in later.getvalue()
    assert "to the later" not in written()


DIE = """
import sys
from wms.telemetry import logs
logs.configure("dying", as_json=True)
secret = sys.argv[1]
raise RuntimeError(f"cannot use {secret}")
"""


def test_what_ends_the_process_is_cleaned_too(token: str) -> None:
    for secret in (token, URL):
        ended = subprocess.run(
            [sys.executable, "-c", DIE, secret], capture_output=True, text=True, timeout=60, check=False
        )
        assert ended.returncode == 1
        assert json.loads(ended.stderr)["event"] == "not caught"
        assert "cannot use" in ended.stderr
        assert secret not in ended.stderr
        assert PASSWORD not in ended.stderr


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_what_is_below_the_level_is_not_written(level: logs.Level, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    logs.configure("test", level)
    order = ["debug", "info", "warning", "error"]
    for each in order:
        structlog.get_logger().log(getattr(logging, each.upper()), f"said at {each}")
    said = [each for each in order if f"said at {each}" in stream.getvalue()]
    assert said == order[order.index(level) :]
