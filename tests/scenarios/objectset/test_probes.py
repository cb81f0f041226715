"""Availability probes: which objects pass, and what a set reports of the others."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from lamina.client.client import Client
from lamina.objects.types import Made, Obj
from tests.bed.scenarios import check
from tests.scenarios.objectset.stage import Stage, condition, has_condition, is_available, message
from tests.scenarios.objectset.widgets import probe, served_widgets, widget

pytestmark = pytest.mark.asyncio(loop_scope="session")

READY: Obj = {"condition": {"type": "Ready", "status": "True"}}
EQUAL: Obj = {"fieldsEqual": {"fieldA": ".spec.replicas", "fieldB": "status.replicas"}}
BIG: Obj = {"cel": {"rule": "self.status.replicas > 1", "message": "too small"}}
PASSES = ""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def group(served: tuple[Client, Path]) -> AsyncIterator[str]:
    """The group of a kind with a status."""
    async with served_widgets(served[0]) as group:
        yield group


@dataclass
class Case:
    """Some probes, a status, and what is reported of an object with it; `generation` stands for that of the object."""

    probes: tuple[Obj, ...]
    status: Made
    reports: str
    selector: Made = field(default_factory=dict)


def ready(status: str, **fields: object) -> Made:
    return {"conditions": [{"type": "Ready", "status": status, "reason": "Because", **fields}]}


CASES = {
    "condition-true": Case((READY,), ready("True"), PASSES),
    "condition-of-this-generation": Case((READY,), ready("True", observedGeneration=1), PASSES),
    "condition-false": Case((READY,), ready("False"), '"Ready"] is False'),
    "condition-missing": Case(
        (READY,), {"conditions": [{"type": "Other", "status": "True"}]}, 'missing .status.condition["Ready"]'
    ),
    "no-conditions": Case((READY,), {"other": 1}, "missing .status.conditions"),
    "conditions-malformed": Case((READY,), {"conditions": "none"}, "malformed .status.conditions"),
    "condition-outdated": Case((READY,), ready("True", observedGeneration=7), '"Ready"] outdated'),
    "condition-wants-false": Case(
        ({"condition": {"type": "Ready", "status": "False"}},), ready("False"), PASSES
    ),
    "fields-equal": Case((EQUAL,), {"replicas": 2}, PASSES),
    "fields-different": Case((EQUAL,), {"replicas": 3}, '".spec.replicas" != ".status.replicas"'),
    "field-missing": Case((EQUAL,), {"other": 3}, '".status.replicas" missing'),
    "cel-true": Case((BIG,), {"replicas": 2}, PASSES),
    "cel-false": Case((BIG,), {"replicas": 1}, "too small"),
    "cel-fails": Case((BIG,), {"other": 1}, "CEL program failed"),
    "all-are-true": Case((READY, EQUAL, BIG), {"replicas": 2, **ready("True")}, PASSES),
    "one-is-false": Case((READY, EQUAL, BIG), {"replicas": 2, **ready("False")}, '"Ready"] is False'),
    "status-outdated": Case(
        (READY,), {"observedGeneration": 7, **ready("True")}, ".status outdated"
    ),
    "status-of-this-generation": Case((READY,), {"observedGeneration": 1, **ready("True")}, PASSES),
    "an-empty-probe-is-ignored": Case(({}, READY), ready("True"), PASSES),
    "label-selected": Case(
        (READY,), {}, "missing .status.conditions", {"selector": {"matchLabels": {"probed": "yes"}}}
    ),
    "label-excluded": Case(
        (READY,), {}, PASSES, {"selector": {"matchLabels": {"probed": "no"}}}
    ),
    "expression-excluded": Case(
        (READY,),
        {},
        PASSES,
        {"selector": {"matchExpressions": [{"key": "probed", "operator": "DoesNotExist"}]}},
    ),
}  # fmt: skip


@check("OS-37")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
async def test_only_an_object_that_passes_all_probes_is_available(
    stage: Stage, group: str, case: Case
) -> None:
    made = widget(group, "w", labels={"probed": "yes"}, spec={"replicas": 2})
    probes = [probe(group, *case.probes, **case.selector)]
    async with stage.running():
        await stage.given_set(
            "v1",
            stage.phase("p1", made),
            stage.phase("p2", stage.config_map("next")),
            availabilityProbes=probes,
        )
        ref = stage.object_ref("w", f"{group}/v1", "Widget")
        await stage.until(ref, bool)
        if case.status:
            await stage.client.patch(ref, {"status": case.status}, subresource="status")
        if case.reports == PASSES:
            await stage.until_set("v1")
            assert await stage.object("next") is not None
            return
        found = await stage.until_set("v1", lambda now: case.reports in message(now, "Available"))
        await stage.settled()

        assert condition(found, "Available") == ("False", "ProbeFailure")
        about = f"{group} Widget {stage.namespace}/w: "
        assert message(found, "Available").startswith(f'Phase "p1" failed: {about}')
        assert await stage.object("next") is None


@check("OS-37")
async def test_what_a_probe_does_not_know_hides_what_others_say(stage: Stage, group: str) -> None:
    async with stage.running():
        made = widget(group, "w", spec={"replicas": 2})
        await stage.given_set(
            "v1", stage.phase("p1", made), availabilityProbes=[probe(group, READY), probe(group, EQUAL)]
        )
        ref = stage.object_ref("w", f"{group}/v1", "Widget")
        await stage.until(ref, bool)
        await stage.client.patch(
            ref, {"status": {"replicas": 3, **ready("True", observedGeneration=7)}}, subresource="status"
        )

        found = await stage.until_set("v1", lambda now: "outdated" in message(now, "Available"))

        assert ".spec.replicas" not in message(found, "Available")


@check("OS-37")
async def test_a_status_of_an_older_generation_blocks_until_it_is_of_the_current_one(
    stage: Stage, group: str
) -> None:
    async with stage.running():
        made = widget(group, "w", spec={"replicas": 2})
        await stage.given_set("v1", stage.phase("p1", made), availabilityProbes=[probe(group, EQUAL)])
        ref = stage.object_ref("w", f"{group}/v1", "Widget")
        await stage.until(ref, bool)
        current = {"status": {"replicas": 2, "observedGeneration": 1}}
        await stage.client.patch(ref, current, subresource="status")
        await stage.until_set("v1")

        await stage.edit(ref, {"spec": {"unlisted": "edited"}})
        await stage.until_set("v1", lambda now: "outdated" in message(now, "Available"))
        await stage.client.patch(ref, {"status": {"observedGeneration": 2}}, subresource="status")

        await stage.until_set("v1")


@check("OS-37")
async def test_an_object_that_no_probe_selects_is_available_once_it_exists(stage: Stage, group: str) -> None:
    async with stage.running():
        await stage.given_set(
            "v1",
            stage.phase("p1", widget(group, "w")),
            stage.phase("p2", stage.config_map("cm")),
            probed=True,
        )

        await stage.until_set("v1")


INVALID = {
    "syntax": ("self.status.", "does not compile"),
    "no-bool": ("self.status.replicas + 1", "must evaluate to a bool"),
    "unknown-variable": ("object.status.replicas > 1", "does not compile"),
}


@check("OS-37")
@pytest.mark.parametrize(("rule", "because"), INVALID.values(), ids=INVALID.keys())
async def test_an_invalid_expression_is_reported_and_nothing_is_written(
    stage: Stage, rule: str, because: str
) -> None:
    broken = {"selector": {"kind": {"group": "", "kind": "ConfigMap"}}, "probes": [READY]}
    wrong = {**broken, "probes": [READY, {"cel": {"rule": rule, "message": "no"}}]}
    async with stage.running():
        await stage.given_set(
            "v1", stage.phase("p1", stage.config_map("cm")), availabilityProbes=[broken, wrong]
        )
        found = await stage.until_set("v1", lambda now: has_condition(now, "Available"))
        await stage.settled()

        assert condition(found, "Available") == ("False", "PreflightError")
        told = message(found, "Available")
        assert "spec.availabilityProbes[1].probes[1].cel.rule" in told
        assert because in told
        assert "in a new revision" in told, "the remedy is named"
        assert await stage.object("cm") is None


@check("OS-37")
async def test_an_invalid_selector_is_reported(stage: Stage) -> None:
    kind = {"group": "", "kind": "ConfigMap"}
    selector = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}
    probes = [{"selector": {"kind": kind, "selector": selector}, "probes": [READY]}]
    async with stage.running():
        await stage.given_set("v1", stage.phase("p1", stage.config_map("cm")), availabilityProbes=probes)
        found = await stage.until_set("v1", lambda now: has_condition(now, "Available"))
        await stage.settled()

        assert condition(found, "Available") == ("False", "PreflightError")
        assert "spec.availabilityProbes[0].selector.selector" in message(found, "Available")
        assert await stage.object("cm") is None


@check("OS-37")
async def test_a_deployment_shows_which_revision_still_serves_when_a_probe_is_invalid(stage: Stage) -> None:
    kind = {"group": "", "kind": "ConfigMap"}
    wrong = [{"selector": {"kind": kind}, "probes": [{"cel": {"rule": "self.", "message": "no"}}]}]
    async with stage.running():
        await stage.given_deployment("web", stage.phase("p1", stage.config_map("cm")))
        await stage.until_rolled_out("web", 1)
        phases = stage.phase("p1", stage.config_map("cm", key="v2"))
        await stage.want("web", phases, template={"availabilityProbes": wrong})
        await stage.until_revisions(
            "web", lambda found: len(found) == 2 and has_condition(found[1], "Available")
        )
        await stage.settled()

        first, second = await stage.revisions("web")
        assert is_available(first)
        assert condition(second, "Available") == ("False", "PreflightError")
        found = await stage.until_deployment("web", is_available)
        assert "does not compile" in message(found, "Progressing")
        assert (await stage.live("cm"))["data"] == {"key": "value"}
