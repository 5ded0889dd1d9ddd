"""Structured logs: one event a batch or action, on standard error, secrets taken out before anything is written."""

import logging
import re
import sys
from typing import Any, Literal

import structlog

Level = Literal["debug", "info", "warning", "error"]

_TOKEN = re.compile(r"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*")
_PASSWORD = re.compile(r"(postgres(?:ql)?://[^:/@\s]+:)[^@\s]+@")
_SECRET_NAMES = ("token", "password", "secret", "authorization")


def clean(text: str) -> str:
    """Return the text without anything that looks like a token or a password in an address."""
    return _PASSWORD.sub(r"\1***@", _TOKEN.sub("***", text))


def _redact(_: Any, __: str, event: Any) -> Any:
    for name, value in event.items():
        if any(secret in name.lower() for secret in _SECRET_NAMES):
            event[name] = "***"
        elif isinstance(value, str):
            event[name] = clean(value)
    return event


def configure(service: str, level: Level = "info", *, as_json: bool = True) -> None:
    """Send this process's logs to standard error, as JSON lines or for people."""
    number = getattr(logging, level.upper())
    renderer = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redact,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(service=service)
    _route_library_logs(number)


class _IntoStructlog(logging.Handler):
    """Hands the libraries' own log records on."""

    def emit(self, record: logging.LogRecord) -> None:
        structlog.get_logger().log(record.levelno, record.getMessage(), logger=record.name)


def _route_library_logs(level: int) -> None:
    logging.basicConfig(handlers=[_IntoStructlog()], level=max(level, logging.WARNING), force=True)
    # It reports each refused connection of a broker that is just starting; what follows from it, we report.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.ERROR)
