"""ReplicationControllers: the older ReplicaSets, which select by plain labels."""

from __future__ import annotations

from lamina.actors.workloads.replicas import Flavour, View, controller
from lamina.core.controller import Controller
from lamina.objects.selectors import LabelSelector, from_labels
from lamina.objects.types import GroupKind, Obj

REPLICATION_CONTROLLER = GroupKind("", "ReplicationController")


def selects(owner: Obj) -> LabelSelector:
    return from_labels(owner["spec"].get("selector"))


REPLICATION_CONTROLLERS: Controller[View] = controller(
    Flavour(
        kind=REPLICATION_CONTROLLER,
        by="replication-controller",
        selects=selects,
        counts_terminating=False,
    ),
    "replication controllers",
)
