"""A plan for a definition with the memo of earlier passes equals one without, whatever its instances do in between."""

from datetime import timedelta
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis.strategies import integers, lists, sampled_from, tuples
from msgspec.structs import replace

from lamina.core.model.controller import Controller
from lamina.core.model.memo import MemoStore
from lamina.core.model.plan import Plan
from lamina.errors import AlreadyExists, Conflict, NotFound
from lamina.families.resourcegraph.compiled_graphs import Graphs
from lamina.families.resourcegraph.definitions.controller import definitions
from lamina.families.resourcegraph.definitions.view import View, gather
from lamina.families.resourcegraph.labels import PIN, RECONCILE, UPDATE_POLICY
from lamina.families.resourcegraph.options import DEFAULTS
from lamina.objects import meta
from lamina.objects.types import Made, Obj
from lamina.simulation import planned
from tests.properties.no_memos import NoMemos, comparable
from tests.unit.families.resourcegraph.definitions.clusters import APP, Definitions, app, instance, resource

GATES = (None, ["${exponentiallyUpdated(instances, each)}"], ["${linearlyUpdated(instances, each, 2)}"])
EDITS = (
    "plan", "plan", "plan", "half a plan", "create", "recreate", "delete", "pin", "unpin", "policy", "suspend",
    "relabel", "move", "complete", "definition", "gate", "run", "time",
)  # fmt: skip


class Edited(Definitions):
    """A definition whose instances are edited in between passes."""

    def edit(self, what: str, number: int) -> None:
        name = f"a{number % 4}"
        match what:
            case "create":
                self.cluster.create(instance(name))
            case "recreate":
                self.cluster.delete(meta.ref(self.instance(name)))
                self.cluster.create(instance(name))
            case "delete":
                self.cluster.delete(meta.ref(self.instance(name)))
            case "pin":
                self._patch(name, annotations={PIN: str(number % 3)})
            case "unpin":
                self._patch(name, annotations={PIN: None})
            case "policy":
                self._patch(name, annotations={UPDATE_POLICY: ("Auto", "Manual")[number % 2]})
            case "suspend":
                self._patch(name, annotations={RECONCILE: ("disabled", None)[number % 2]})
            case "relabel":
                self._patch(name, labels={"n": str(number)})
            case "move":
                self._report(name, currentRGDRevision=number % 3, since=self.cluster.now.isoformat())
            case "complete":
                self._report(name, observedRGDRevision=number % 3)
            case "definition":
                self._state(resources=[resource(more=str(number % 3))])
            case "gate":
                self._state(propagateWhen=GATES[number % 3])
            case "run":
                self.run(number / 4)
            case "time":
                self.cluster.now += timedelta(seconds=number)

    def _patch(self, name: str, **metadata: Obj) -> None:
        self.cluster.patch(meta.ref(self.instance(name)), {"metadata": metadata})

    def _report(self, name: str, **status: Any) -> None:
        self.cluster.patch(meta.ref(self.instance(name)), {"status": status}, subresource="status")

    def _state(self, **spec: Any) -> None:
        live: Made = self.app
        self.cluster.replace({**live, "spec": {**live["spec"], **spec}}, "")


def controllers() -> tuple[Controller[View], Controller[View]]:
    """Return two controllers of definitions: with memos, and without."""
    graphs = Graphs(omit=DEFAULTS.omit, most_dimensions=DEFAULTS.max_dimensions)
    one = definitions(DEFAULTS, graphs)
    with_memos, without = (
        partial(gather, graphs=graphs, options=DEFAULTS, memos=memos) for memos in (MemoStore(), NoMemos())
    )
    return replace(one, gather=with_memos), replace(one, gather=without)


def outcome(there: Definitions, one: Controller[View]) -> Plan | str:
    """Return the plan, or why there is none."""
    try:
        return planned(there.cluster, one, APP)
    except Exception as error:
        return repr(error)


@settings(max_examples=120, deadline=None)
@given(lists(tuples(sampled_from(EDITS), integers(0, 12)), min_size=4, max_size=25), sampled_from(GATES))
def test_a_plan_with_a_memo_equals_a_plan_without(
    edits: list[tuple[str, int]], gate: list[str] | None
) -> None:
    there = Edited()
    there.apply(app(propagateWhen=gate) if gate is not None else app(), seconds=2)
    there.apply(*(instance(f"a{number}") for number in range(3)), seconds=5)
    remembers, forgets = controllers()
    for what, number in [*edits, *[("plan", 0)] * 3]:
        try:
            there.edit(what, number)
        except (AlreadyExists, Conflict, NotFound):
            continue
        with_memo, without = outcome(there, remembers), outcome(there, forgets)

        assert comparable(with_memo) == comparable(without), (what, number)
        if what in ("plan", "half a plan") and isinstance(with_memo, Plan):
            carry_out(there, with_memo, 1 + number % 3 if what == "half a plan" else None)


def carry_out(there: Definitions, plan: Plan, most: int | None) -> None:
    """Carry out a plan, or the first writes of it."""
    for action in plan.actions[:most]:
        try:
            there.cluster.perform(action)
        except (AlreadyExists, Conflict, NotFound):
            return
