"""Durations and shares on the command line."""

import click
import pytest
from click.testing import CliRunner

from lamina.cli.commands.simulate import simulate
from lamina.cli.options.param_types import format_seconds, parse_seconds, parse_share
from lamina.errors import SettingsError


@pytest.mark.parametrize("text", ["0", "0s", "0m", "0h"])
def test_zero_is_a_duration_where_it_is_allowed(text: str) -> None:
    (span,) = [one for one in simulate.params if one.name == "span"]

    with click.Context(simulate) as context:
        assert span.process_value(context, text).total_seconds() == 0
    with pytest.raises(SettingsError):
        parse_seconds(text, "--for")


@pytest.mark.parametrize("text", ["", "soon", "-1s", "nan", "inf"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    done = CliRunner().invoke(simulate, ["--for", text])

    assert isinstance(done.exception, SettingsError)
    assert "expected a duration" in str(done.exception)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("1h30m", 5400), ("2d", 172800), ("1d2h3m", 93780), ("200ms", 0.2), ("5", 5)],
)
def test_durations_are_parsed_and_formatted(text: str, seconds: float) -> None:
    assert parse_seconds(text, "TIME") == seconds
    assert parse_seconds(format_seconds(seconds), "TIME") == seconds


@pytest.mark.parametrize("text", ["", "soon", "0s", "-5s", "nan", "inf", "1000000h", "1d-2h", "d2h", "1dd"])
def test_invalid_durations_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="TIME: expected a duration such as 30s, 10m or 1d"):
        parse_seconds(text, "TIME")


def test_shares_are_read() -> None:
    assert (parse_share("20%", "x"), parse_share("0.2", "x"), parse_share("100%", "x")) == (0.2, 0.2, 1.0)
    for text in ("0", "200%", "some"):
        with pytest.raises(SettingsError, match="--rate: expected a share such as 20% or 0.2"):
            parse_share(text, "--rate")
