"""The reference pages keep their promises."""

import re
from pathlib import Path

import click
import pytest
from prometheus_client import Counter
from prometheus_client.metrics import MetricWrapperBase

from lamina.cli.run import run
from lamina.runtime.metrics import Metrics

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "metacontroller.md").read_text()
ORIGINAL = (
    "discovery-interval", "cache-flush-interval", "client-go-qps", "client-go-burst", "workers", "events-qps",
    "events-burst", "metrics-address", "health-probe-bind-address", "pprof-address", "leader-election",
    "leader-election-resource-lock", "leader-election-namespace", "leader-election-id", "target-label-selector",
    "apply-strategy", "apply-strategy-ssa-field-manager", "kubeconfig", "zap-devel", "zap-encoder",
    "zap-log-level", "zap-stacktrace-level",
)  # fmt: skip
"""Every option of Metacontroller 4.17."""


def rows() -> dict[str, list[str]]:
    """Return the options on the page, each with its cells."""
    lines = [line.split("|")[1:-1] for line in PAGE.splitlines() if line.startswith("| `--")]
    return {cells[0].strip(" `-"): [cell.strip() for cell in cells[1:]] for cells in lines}


def test_every_option_of_the_original_is_on_the_page() -> None:
    assert sorted(rows()) == sorted(ORIGINAL)


@pytest.mark.parametrize("name", ORIGINAL)
def test_every_option_of_the_original_is_known_and_has_the_default_that_the_page_says(name: str) -> None:
    known = {one: option for option in run.params for one in option.opts if isinstance(option, click.Option)}
    option = known[f"--{name}"]
    here = re.sub(r",.*", "", rows()[name][1])

    default = option.default
    if isinstance(default, bool):
        assert here == ("on" if default else "off")
    elif isinstance(default, str | int | float) and not name.startswith("zap-"):
        assert here == {"": "everything", str(1 / 300): "1/300"}.get(str(default), str(default))


COUNTED = (ROOT / "docs" / "reference" / "metrics.md").read_text()


def series() -> dict[str, list[str]]:
    """Return the series on the page, each with its labels."""
    lines = [line.split("|")[1:-1] for line in COUNTED.splitlines() if line.startswith("| `")]
    found = {cells[0].strip(" `"): cells[1].replace(",", " ").split() for cells in lines}
    whom = ["controller_name", "controller_type", "url"]
    return {
        name.replace("HOOK", hook): [*(whom if "HOOK" in name else ()), *labels]
        for name, labels in found.items()
        for hook in (("sync", "finalize", "customize") if "HOOK" in name else ("",))
    }


def test_everything_that_is_counted_is_on_the_page_with_its_labels_and_nothing_else_is() -> None:
    registered = Metrics().registry._collector_to_names
    known = {
        f"{one._name}{'_total' if isinstance(one, Counter) else ''}": sorted(one._labelnames)
        for one in registered
        if isinstance(one, MetricWrapperBase)
    }

    assert {name: sorted(labels) for name, labels in series().items()} == known


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_every_page_that_is_linked_to_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text())

    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []
