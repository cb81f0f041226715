"""The reference pages agree with the code."""

import re
from pathlib import Path
from typing import get_args

import click
import pytest
from prometheus_client import Counter
from prometheus_client.metrics import MetricWrapperBase

from lamina.cli.commands.agent import agent
from lamina.cli.commands.run import run
from lamina.core.model.family import Family
from lamina.core.model.plan import Create
from lamina.core.model.queries import Answers, Call, CallOrigin, Listed
from lamina.core.phases.live_objects import follows
from lamina.core.phases.manifest import Manifest, ObjectKey
from lamina.families.manifestwork.api import StrategyType
from lamina.families.manifestwork.hub import phase
from lamina.families.objectset.labels import API_VERSION
from lamina.families.objectset.metrics import cached, since
from lamina.families.resourcegraph import counters
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj
from lamina.runtime.metrics.owners import OwnerStates
from lamina.runtime.metrics.prometheus import Metrics
from lamina.simulation import planned
from tests.docs import states
from tests.unit.families.resourcegraph.definitions.clusters import APP, Definitions, app, instance

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


WORKS = (ROOT / "docs" / "reference" / "manifestwork.md").read_text()


def test_the_options_of_the_agent_have_the_defaults_that_the_page_says() -> None:
    known = {one: option.default for option in agent.params for one in option.opts}
    rows = [line.split("|")[2] for line in WORKS.splitlines() if re.match(r"\| .* \| `--", line)]
    said = {one: default for row in rows for one, default in re.findall(r"`(--[a-z-]+)`(?:, (\w+))?", row)}

    assert len(said) == 10
    assert {name: str(known[name]) for name in said if said[name]} == {
        name: default for name, default in said.items() if default
    }


@pytest.mark.parametrize("reason", sorted(set(re.findall(r"`([A-Z][a-zA-Z]+)`", WORKS))))
def test_a_reason_or_a_kind_on_the_page_is_one_in_the_code(reason: str) -> None:
    assert reason in [*vars(phase).values(), *get_args(StrategyType)]


HOOKS = ("sync", "finalize", "customize")
SET: Obj = {
    "apiVersion": API_VERSION,
    "kind": "ObjectSet",
    "metadata": {"name": "web-1", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "status": {
        "conditions": [{"type": "Succeeded", "status": "True", "lastTransitionTime": "2026-01-01T00:01:00Z"}]
    },
}
CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True)
CONTAINED = Manifest(phase="p1", obj={}, key=ObjectKey("", "ConfigMap", "default", "a"), kind=CONFIG_MAP)
COUNTED = (ROOT / "docs" / "reference" / "metrics.md").read_text()


def series() -> dict[str, list[str]]:
    """Return the series on the page, each with its labels."""
    lines = [line.split("|")[1:-1] for line in COUNTED.splitlines() if line.startswith("| `")]
    found = {cells[0].strip(" `"): cells[1].replace(",", " ").split() for cells in lines}
    whom = ["controller_name", "controller_type", "url"]
    return {
        name.replace("HOOK", hook): [*(whom if "HOOK" in name else ()), *labels]
        for name, labels in found.items()
        for hook in (HOOKS if "HOOK" in name else ("",))
    }


def count_graphs(metrics: Metrics) -> None:
    """Count what the family of resource graphs has metrics for."""
    there = Definitions()
    there.apply(app(), instance("a1"))
    metrics.of("definitions").gauges(APP, planned(there.cluster, there.controller, APP).gauges)
    changed = {"state": "other"}
    found = [
        counters.issued(there.revision(1)),
        counters.pruned(),
        counters.deleted(there.app),
        counters.rolled_back(counters.DEFINITION, counters.RESTORED),
        *counters.of_definition(there.app, changed),
        *counters.of_instance(there.instance("a1"), changed),
    ]
    metrics.of("definitions").wrote(Create(obj=there.app, counters=tuple(found)))


def test_everything_that_is_counted_is_on_the_page_with_its_labels_and_nothing_else_is() -> None:
    metrics = Metrics()
    for hook in HOOKS:
        origin = CallOrigin("metacontroller", "CompositeController", "cc")
        metrics.calls.began(Call(url="http://hook", body=b"", seconds=1.0, purpose=hook, origin=origin))
    answers = Answers({query: Listed(()) for query in follows([CONTAINED])})
    metrics.of("objectset").gauges(meta.ref(SET), (*since(SET), *cached(SET, [CONTAINED], answers)))
    count_graphs(metrics)
    registered = metrics.registry._collector_to_names
    known = {
        f"{one._name}{'_total' if isinstance(one, Counter) else ''}": sorted(one._labelnames)
        for one in registered
        if isinstance(one, MetricWrapperBase)
    }
    known |= {
        family.name: sorted(family._labelnames)
        for one in registered
        if isinstance(one, OwnerStates)
        for family in one.describe()
    }

    assert {name: sorted(labels) for name, labels in series().items()} == known


def test_every_series_that_a_page_shows_has_the_labels_it_shows() -> None:
    pages = "".join(page.read_text() for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))])
    shown = re.findall(r"\b([a-z_]+)\{([a-z_]+(?:=\"[^\"]*\")?(?:, ?[a-z_]+(?:=\"[^\"]*\")?)*)\}", pages)

    assert shown
    assert [
        (name, label)
        for name, labels in shown
        if name in series()
        for label in re.findall(r"([a-z_]+)(?:=|,|$)", labels)
        if label not in series()[name]
    ] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_every_page_that_is_linked_to_is_there(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text())

    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert missing == []


def test_the_tables_of_states_are_those_that_decide() -> None:
    """If this fails, print them again: `python -m tests.docs.states`."""
    shown = states.PAGE.read_text().split(states.BEGIN)[1].split(states.END)[0].strip()

    assert shown == states.printed()


def test_the_page_on_families_has_every_field() -> None:
    page = (ROOT / "docs" / "concepts" / "family.md").read_text()
    table = page.split("## What a new family has to write")[0]

    assert tuple(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == Family.__struct_fields__
