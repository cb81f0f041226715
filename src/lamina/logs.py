"""
Log lines: a constant message and key-value pairs, as text or JSON.

structlog is imported with the first line, because it loads slowly and a settled
system logs nothing.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger, Processor

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


class Logger(Protocol):
    """The logger interface; structlog's loggers implement it too."""

    def debug(self, event: str, **keys: Any) -> Any: ...

    def info(self, event: str, **keys: Any) -> Any: ...

    def warning(self, event: str, **keys: Any) -> Any: ...

    def error(self, event: str, **keys: Any) -> Any: ...

    def exception(self, event: str, **keys: Any) -> Any: ...

    def bind(self, **keys: Any) -> Logger: ...


class Log:
    """A logger that is built on first use and discards lines below its level."""

    def __init__(self) -> None:
        self._level = "warning"
        self._form = "text"
        self._logger: FilteringBoundLogger | None = None

    def configure(self, level: str, form: str) -> None:
        """Set the level, and the format: text or JSON."""
        self._level, self._form, self._logger = level, form, None
        logging.basicConfig(
            level=max(_LEVELS[level], logging.WARNING), stream=sys.stderr, format="%(name)s: %(message)s"
        )

    def debug(self, event: str, **keys: Any) -> None:
        self._log("debug", event, keys)

    def info(self, event: str, **keys: Any) -> None:
        self._log("info", event, keys)

    def warning(self, event: str, **keys: Any) -> None:
        self._log("warning", event, keys)

    def error(self, event: str, **keys: Any) -> None:
        self._log("error", event, keys)

    def exception(self, event: str, **keys: Any) -> None:
        """Write a line with the traceback of the exception being handled."""
        self._log("error", event, {**keys, "exc_info": True})

    def bind(self, **keys: Any) -> Bound:
        """Return a logger that adds these keys to every line."""
        return Bound(self, keys)

    def _log(self, level: str, event: str, keys: dict[str, Any]) -> None:
        if _LEVELS[level] < _LEVELS[self._level]:
            return
        if self._logger is None:
            self._logger = _made(self._form)
        getattr(self._logger, level)(event, **keys)


class Bound:
    """A logger that adds keys to its lines."""

    def __init__(self, log: Log, keys: dict[str, Any]) -> None:
        self._log, self._keys = log, keys

    def debug(self, event: str, **keys: Any) -> None:
        self._log.debug(event, **{**self._keys, **keys})

    def info(self, event: str, **keys: Any) -> None:
        self._log.info(event, **{**self._keys, **keys})

    def warning(self, event: str, **keys: Any) -> None:
        self._log.warning(event, **{**self._keys, **keys})

    def error(self, event: str, **keys: Any) -> None:
        self._log.error(event, **{**self._keys, **keys})

    def exception(self, event: str, **keys: Any) -> None:
        self._log.exception(event, **{**self._keys, **keys})

    def bind(self, **keys: Any) -> Bound:
        return Bound(self._log, {**self._keys, **keys})


class _StderrWriter:
    """Writes to the current standard error; a closed one is ignored."""

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.flush()


def _made(form: str) -> FilteringBoundLogger:
    import structlog

    renderer: Processor = (
        structlog.processors.JSONRenderer()
        if form == "json"
        else structlog.processors.LogfmtRenderer(
            key_order=["timestamp", "level", "event"], bool_as_flag=False
        )
    )
    made: FilteringBoundLogger = structlog.wrap_logger(
        structlog.PrintLogger(cast(TextIO, _StderrWriter())),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
    )
    return made


log = Log()
"""The one logger of the process."""
