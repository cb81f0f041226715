"""What the chart has from the source is what the source says."""

import re
from collections.abc import Iterator

import pytest

from lamina.core.model.state import State
from lamina.deploy.alerts import groups
from lamina.deploy.dashboard import dashboard
from tests.docs.pages import ROOT
from tools import chart

_METRIC = re.compile(r"\b([a-z_]+_[a-z_]+)\{")
_SERIES = re.compile(r"^\| `([a-zA-Z_]+)`", re.M)
PROMETHEUS = {"process_resident_memory_bytes"}
OWNERS = {"lamina_owner_state", "lamina_owner_state_since_seconds"}


def expressions() -> Iterator[str]:
    yield from (rule["expr"] for group in groups("lamina") for rule in group["rules"])
    for panel in dashboard("lamina")["panels"]:
        yield from (target["expr"] for target in panel["targets"])


@pytest.mark.parametrize("name", chart.files())
def test_a_written_file_is_up_to_date(name: str) -> None:
    assert (chart.CHART / name).read_text() == chart.files()[name], "run `python -m tools.chart`"


def test_alerts_and_dashboard_use_series_that_are_served() -> None:
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    served = {name.replace("HOOK", "sync") for name in _SERIES.findall(page)}
    served |= {f"{name}_bucket" for name in served}

    used = {name for text in expressions() for name in _METRIC.findall(text)}

    assert used - served - PROMETHEUS <= OWNERS
    assert used >= OWNERS


def test_alerts_name_states_that_there_are() -> None:
    named = {
        state
        for text in expressions()
        for states in re.findall(r'state[!=]~"([^"]+)"', text)
        for state in states.split("|")
    }

    assert {State.DEGRADED, State.ABORTED, State.PAUSED} <= named <= set(State)


def test_every_alert_has_a_duration_a_severity_and_a_description() -> None:
    rules = [rule for group in groups("lamina") for rule in group["rules"]]

    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert re.fullmatch(r"\d+[mhd]", rule["for"])
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert rule["annotations"]["description"].endswith(".")


def test_panels_do_not_overlap() -> None:
    places = [panel["gridPos"] for panel in dashboard("lamina")["panels"]]

    assert len({(place["x"], place["y"]) for place in places}) == len(places)
    assert all(place["x"] + place["w"] <= 24 for place in places)
