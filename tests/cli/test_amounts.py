"""Lengths of time, as people type them."""

import click
import pytest
from click.testing import CliRunner

from lamina.cli.amounts import length
from lamina.cli.simulate import simulate
from lamina.errors import SettingsError


@pytest.mark.parametrize("text", ["0", "0s", "0m", "0h"])
def test_no_time_at_all_is_a_length_where_that_makes_sense(text: str) -> None:
    (span,) = [one for one in simulate.params if one.name == "span"]

    with click.Context(simulate) as context:
        assert span.process_value(context, text).total_seconds() == 0
    with pytest.raises(SettingsError):
        length(text, "--for")


@pytest.mark.parametrize("text", ["", "soon", "-1s", "nan", "inf"])
def test_what_is_no_length_is_refused(text: str) -> None:
    done = CliRunner().invoke(simulate, ["--for", text])

    assert isinstance(done.exception, SettingsError)
    assert "expected a length of time" in str(done.exception)
