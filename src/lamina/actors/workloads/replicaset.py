"""ReplicaSets: as many pods as were asked for, of one template."""

from __future__ import annotations

from lamina.actors.workloads.replicas import Flavour, View, controller
from lamina.core.controller import Controller
from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.types import GroupKind, Obj

REPLICA_SET = GroupKind("apps", "ReplicaSet")


def selects(owner: Obj) -> LabelSelector:
    return from_object(owner["spec"].get("selector"))


REPLICA_SETS: Controller[View] = controller(
    Flavour(kind=REPLICA_SET, by="replicaset-controller", selects=selects, counts_terminating=True),
    "replica sets",
)
