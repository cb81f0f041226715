"""Whom a change to a pod sets thinking."""

import pytest

from lamina.actors.stages.controller import staging
from lamina.core.world import Change
from lamina.objects import meta
from lamina.objects.types import Obj
from lamina.paper.kinds import POD, make
from lamina.runtime.memory import Gone, Memory
from lamina.stages import load_stages


@pytest.mark.parametrize(("node", "concerned"), [("", False), ("node-1", True)])
def test_a_pod_is_looked_at_once_it_has_a_node(node: str, concerned: bool) -> None:
    pod: Obj = {**make(POD, "web"), "spec": {"nodeName": node} if node else {}}
    watch = next(one for one in staging(load_stages(None)).watches if one.selects(POD))

    told = watch.concerns(Memory(Gone()), Change(POD, None, pod))

    assert list(told) == ([meta.ref(pod)] if concerned else [])
