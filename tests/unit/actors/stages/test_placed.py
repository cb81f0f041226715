"""What a change of a pod enqueues."""

import pytest

from lamina.actors.stages.controller import stages_controller
from lamina.control_plane.load_stages import load_stages
from lamina.core.model.world import Change
from lamina.objects import meta
from lamina.objects.types import Obj
from lamina.runtime.cache.indexer import DeletedUids
from lamina.runtime.cache.lister import Lister
from lamina.simulation.cluster.kinds import POD, make


@pytest.mark.parametrize(("node", "concerned"), [("", False), ("node-1", True)])
def test_a_pod_is_looked_at_once_it_has_a_node(node: str, concerned: bool) -> None:
    pod: Obj = {**make(POD, "web"), "spec": {"nodeName": node} if node else {}}
    watch = next(one for one in stages_controller(load_stages(None)).watches if one.selects(POD))

    told = watch.enqueue(Lister(DeletedUids()), Change(POD, None, pod))

    assert list(told) == ([meta.ref(pod)] if concerned else [])
