"""The ReplicaSet controller."""

from __future__ import annotations

from lamina.actors.workloads.replica_sync import Variant, View, controller
from lamina.core.model.controller import Controller
from lamina.objects.selectors import LabelSelector, from_object
from lamina.objects.types import GroupKind, Obj

REPLICA_SET = GroupKind("apps", "ReplicaSet")


def selects(owner: Obj) -> LabelSelector:
    return from_object(owner["spec"].get("selector"))


REPLICA_SETS: Controller[View] = controller(
    Variant(kind=REPLICA_SET, by="replicaset-controller", selects=selects, counts_terminating=True),
    "replica sets",
)
