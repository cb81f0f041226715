"""Going back, on paper: an undo is carried out, and nothing but the spec of its owner may be another then."""

from typing import Any

from lamina.core.controller import AnyController
from lamina.core.plan import Plan, Replace
from lamina.objects import meta
from lamina.objects.types import Made, Obj, Ref
from lamina.paper import Paper

_SERVERS = ("resourceVersion", "generation", "managedFields")


def without_spec(obj: Obj) -> Made:
    """Return an object but for its spec, and for what a server notes when somebody writes one."""
    metadata = {name: value for name, value in meta.metadata(obj).items() if name not in _SERVERS}
    return {**{name: value for name, value in obj.items() if name != "spec"}, "metadata": metadata}


def seen(paper: Paper, controller: AnyController, owner: Ref) -> Any:
    """Return the view that somebody who looks now has of an owner."""
    view = controller.gather(paper.world(controller), owner)
    assert view is not None
    return view


def carry_out(paper: Paper, owner: Ref, plan: Plan) -> None:
    """Carry out an undo, and see that nothing but the spec of its owner is another."""
    before, told = dict(paper.objects), len(paper.journal)
    for action in plan.actions:
        assert isinstance(action, Replace)
        assert (action.ref, action.subresource) == (owner, "")
        paper.perform(action)
    # Somebody undid it, and no controller.
    del paper.journal[told:]
    after = paper.objects
    assert after.keys() == before.keys()
    assert {ref for ref in after if after[ref] != before[ref]} <= {owner}
    assert without_spec(after[owner]) == without_spec(before[owner])
