"""Whether a child is as its hook wants it, and what makes it so."""

import pytest

from lamina.core.apply.three_way import ThreeWay
from lamina.core.model.queries import Answers
from lamina.families.metacontroller.hooks.protocol import Response
from lamina.families.metacontroller.labels import LAST_APPLIED
from lamina.families.metacontroller.sync.apply_strategy import ApplyStrategy
from lamina.families.metacontroller.sync.desired import desired
from lamina.objects.types import Made
from tests.unit.families.metacontroller.catset import PARENT, Cats


@pytest.mark.parametrize(
    ("managers", "wanted", "futile"),
    [
        ([("metacontroller", "")],                          {"list": ["x"]}, True),
        ([("metacontroller", ""), ("kubelet", "status")],   {"list": ["x"]}, True),
        ([("metacontroller", ""), ("kubectl", "")],         {"list": ["x"]}, False),
        ([("metacontroller", "")],                          {"list": ["y"]}, False),
        ([],                                                {"list": ["x"]}, False),
    ],
)  # fmt: skip
def test_it_is_no_use_to_recreate_what_the_server_makes_otherwise(
    managers: list[tuple[str, str]], wanted: Made, futile: bool
) -> None:
    cats = Cats()
    cats.start()
    controller = cats.controller("Recreate")
    view = controller.gather(cats.world(controller), PARENT)
    assert view is not None
    named: Made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c", "namespace": "default"}}
    metadata = {**named["metadata"], "labels": {"app": "nginx"}}
    (child,), _ = desired(view, Response(children=({**named, **wanted, "metadata": metadata},)))
    (first,), _ = desired(view, Response(children=({**child.obj, "list": ["x"]},)))
    observed = {**ThreeWay(LAST_APPLIED).create(first.obj), "list": ["x", "filled in"]}
    writers = [{"manager": name, **({"subresource": part} if part else {})} for name, part in managers]
    observed["metadata"] = {**observed["metadata"], "uid": "1", "managedFields": writers}

    strategy = ApplyStrategy(view=view, answers=Answers())

    assert strategy.is_recreation_futile(child, observed) is futile
    assert strategy.is_as_desired(child, observed) is futile
