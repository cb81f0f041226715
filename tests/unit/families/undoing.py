"""Carries out a rollback in simulation, and checks that nothing but the spec of its owner changes."""

from typing import Any

from lamina.core.model.controller import AnyController
from lamina.core.model.plan import Plan, Replace
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.simulation import SimulatedCluster

_SERVERS = ("resourceVersion", "generation", "managedFields")


def without_spec(obj: Obj) -> Made:
    """Return an object without its spec, and without what a server changes when the spec is written."""
    metadata = {name: value for name, value in meta.metadata(obj).items() if name not in _SERVERS}
    return {**{name: value for name, value in obj.items() if name != "spec"}, "metadata": metadata}


def seen(cluster: SimulatedCluster, controller: AnyController, owner: Ref) -> Any:
    """Return the view of an owner that a controller gathers now."""
    view = controller.gather(cluster.world(controller), owner)
    assert view is not None
    return view


def carry_out(cluster: SimulatedCluster, owner: Ref, plan: Plan) -> None:
    """Carry out a rollback, and check that nothing but the spec of its owner changes."""
    before, told = dict(cluster.objects), len(cluster.journal)
    for action in plan.actions:
        assert isinstance(action, Replace)
        assert (action.ref, action.subresource) == (owner, "")
        cluster.perform(action)
    # The rollback is an edit by a user, not a write of a controller.
    del cluster.journal[told:]
    after = cluster.objects
    assert after.keys() == before.keys()
    assert {ref for ref in after if after[ref] != before[ref]} <= {owner}
    assert without_spec(after[owner]) == without_spec(before[owner])
