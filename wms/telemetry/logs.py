"""Structured logs: one event for each batch or action, on standard error. Secrets are removed before anything is written.

Secrets are removed twice. First from every value, at any depth, by the value's name and its form. Then from the
rendered line, since a renderer may reveal more (the `repr` of an object, of bytes, of an error in a list). The error
that ends the process is logged in the same way. A line that cannot be rendered or written is lost, but never raises an
error in the code that logs.
"""

import contextlib
import logging
import re
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Literal

import structlog
from structlog.typing import EventDict, Processor

Level = Literal["debug", "info", "warning", "error"]
"""The severity of a log event. Configured as a threshold: less severe events are not logged."""

HIDDEN = "***"
"""The text that stands in logs in the place of a secret."""
_DEPTH = 8
"""The deepest level of nested values in which secrets are searched."""
_SECRET_NAMES = ("token", "password", "passwd", "secret", "authorization", "credential", "private_key")
_LOOKS = (
    # A signed token, whole or cut off. All lengths are bounded where a hostile text could make looking quadratic.
    (re.compile(r"eyJ[A-Za-z0-9_-]{5,512}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?"), HIDDEN),
    (re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]{8,}"), rf"\1{HIDDEN}"),
    # A password in an address, up to the last @ of the word: unescaped, it may hold others.
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,30}://[^:/@\s\"]{0,256}:)[^\s\"]{0,1024}@"), rf"\1{HIDDEN}@"),
    (re.compile(r"(?i)\b((?:password|passwd|secret|token)\s*=\s*)[^\s&,;\"')]+"), rf"\1{HIDDEN}"),
    # A key in PEM, with its lines as lines or as a renderer writes them, whole or cut off.
    (re.compile(r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"), HIDDEN),
)
"""Patterns of secrets in texts, each with its replacement."""


def clean(text: str) -> str:
    """Return the text with tokens, private keys and passwords replaced by `***`. They are recognised by their form."""
    for look, instead in _LOOKS:
        text = look.sub(instead, text)
    return text


def _redact(_: Any, __: str, event: Any) -> Any:
    return _cleaned(event, _DEPTH)


def _cleaned(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return clean(value)
    if depth and isinstance(value, Mapping):
        return {
            name: HIDDEN if _is_secret(name) else _cleaned(each, depth - 1) for name, each in value.items()
        }
    if depth and isinstance(value, list | tuple | set | frozenset):
        return [_cleaned(each, depth - 1) for each in value]
    return value


def _is_secret(name: object) -> bool:
    return isinstance(name, str) and any(secret in name.lower() for secret in _SECRET_NAMES)


def _clean_line(_: Any, __: str, line: Any) -> Any:
    return clean(line)


def configure(service: str, level: Level = "info", *, as_json: bool = True) -> None:
    """Send all logs of this process to standard error. `service` is added to each event.

    Events below `level` are dropped. Lines are JSON, or text for people if `as_json` is false. Warnings of libraries and the
    uncaught error that ends the process are logged too.
    """
    number = getattr(logging, level.upper())
    renderer = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redact,
            _Safely(renderer),
            _clean_line,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=_Lossy()),  # type: ignore[arg-type] # it writes and flushes alone
    )
    structlog.contextvars.bind_contextvars(service=service)
    _route_library_logs(number)
    sys.excepthook = _log_the_end


class _Safely:
    """A renderer of log lines that replaces values it cannot render. So an object whose `repr` fails does not stop the work that logs it."""

    def __init__(self, renderer: Processor) -> None:
        self._renderer = renderer

    def __call__(self, logger: Any, method: str, event: EventDict) -> Any:
        named = {name: event[name] for name in ("event", "level", "timestamp") if name in event}
        try:
            return self._renderer(logger, method, event)
        except Exception as error:  # noqa: BLE001 - whatever the fault, a line of the log is not worth it
            return self._renderer(logger, method, named | {"not_rendered": type(error).__name__})


class _Lossy:
    """A writer to the current standard error. It drops text if the stream is full or closed."""

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            sys.stderr.flush()


class _IntoStructlog(logging.Handler):
    """A handler that passes the log records of libraries to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        told: dict[str, Any] = {"logger": record.name}
        if record.exc_info and record.exc_info[0] is not None:
            told["exc_info"] = record.exc_info
        structlog.get_logger().log(record.levelno, record.getMessage(), **told)


def _route_library_logs(level: int) -> None:
    logging.basicConfig(handlers=[_IntoStructlog()], level=max(level, logging.WARNING), force=True)
    # It reports each refused connection of a broker that is just starting; what follows from it, we report.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.ERROR)


def _log_the_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Log the uncaught error with which the process ends."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
    else:
        structlog.get_logger().critical("not caught", exc_info=(kind, error, trace))
