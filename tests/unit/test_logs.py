"""Log lines that cannot be written."""

import io
import sys

import pytest

from lamina.logs import Log


def test_a_line_that_cannot_be_written_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    closed = io.StringIO()
    monkeypatch.setattr(sys, "stderr", closed)
    log.warning("first")
    closed.close()

    log.warning("second")


def test_lines_go_to_standard_error_as_it_is_by_now(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    before, now = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", before)
    log.warning("first")
    monkeypatch.setattr(sys, "stderr", now)
    log.warning("second")

    assert "first" in before.getvalue() and "second" not in before.getvalue()
    assert "second" in now.getvalue()
