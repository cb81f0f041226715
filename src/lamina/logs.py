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


class _JsonHandler(logging.Handler):
    """Writes the records of Python's own logging, those of libraries, as lines of the log."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        names = (name for name, number in reversed(_LEVELS.items()) if record.levelno >= number)
        keys: dict[str, Any] = {"exc_info": record.exc_info} if record.exc_info else {}
        try:
            getattr(self._log, next(names, "debug"))(record.getMessage(), logger=record.name, **keys)
        except Exception:
            # As every handler: a record that cannot be written is no error of the library that logs it.
            self.handleError(record)


class Log:
    """A logger that is built on first use and discards lines below its level."""

    def __init__(self) -> None:
        self._level = "warning"
        self._form = "text"
        self._logger: FilteringBoundLogger | None = None

    def configure(self, level: str, form: str) -> None:
        """Set the level, and the format: text or JSON."""
        self._level, self._form, self._logger = level, form, None
        handlers: dict[str, Any] = {"stream": sys.stderr}
        if self.is_json:
            handlers = {"handlers": [_JsonHandler(self)]}
            logging.captureWarnings(True)
            sys.excepthook = self._log_uncaught
        logging.basicConfig(
            level=max(_LEVELS[level], logging.WARNING), format="%(name)s: %(message)s", **handlers
        )

    @property
    def is_json(self) -> bool:
        """Say whether every line that this process writes to standard error has to be a JSON object."""
        return self._form == "json"

    def announce(self, text: str, event: str, **keys: Any) -> None:
        """Write a line whatever the level, for the start and the end of the process: as text, or as an event."""
        if self.is_json:
            self._write("info", event, keys)
        else:
            _STDERR.write(f"{text}\n")

    def relay(self, text: str, event: str, level: str = "error", **keys: Any) -> None:
        """Write the text of another program, whatever the level: as it is, or as one event."""
        if self.is_json:
            self._write(level, event, {**keys, "text": text})
        else:
            _STDERR.write(text)

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
        if _LEVELS[level] >= _LEVELS[self._level]:
            self._write(level, event, keys)

    def _log_uncaught(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        self._write("error", "the process failed because of a defect", {"exc_info": error})

    def _write(self, level: str, event: str, keys: dict[str, Any]) -> None:
        if self._logger is None:
            self._logger = _made(self._form)
        getattr(self._logger, level)(event, **keys)


class Bound:
    """A logger that adds keys to its lines."""

    @property
    def is_json(self) -> bool:
        return self._log.is_json

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

    def relay(self, text: str, event: str, level: str = "error", **keys: Any) -> None:
        self._log.relay(text, event, level, **{**self._keys, **keys})

    def bind(self, **keys: Any) -> Bound:
        return Bound(self._log, {**self._keys, **keys})


class _StderrWriter:
    """Writes to the current standard error; a closed one is ignored."""

    def write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            sys.stderr.flush()


_STDERR = _StderrWriter()


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
        structlog.PrintLogger(cast(TextIO, _STDERR)),
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
