"""The ReplicationController controller, whose selector is a map of labels."""

from __future__ import annotations

from lamina.actors.workloads.replica_sync import Variant, View, controller
from lamina.core.model.controller import Controller
from lamina.objects.selectors import LabelSelector, from_labels
from lamina.objects.types import GroupKind, Obj

REPLICATION_CONTROLLER = GroupKind("", "ReplicationController")


def selects(owner: Obj) -> LabelSelector:
    return from_labels(owner["spec"].get("selector"))


REPLICATION_CONTROLLERS: Controller[View] = controller(
    Variant(
        kind=REPLICATION_CONTROLLER,
        by="replication-controller",
        selects=selects,
        counts_terminating=False,
    ),
    "replication controllers",
)
