"""
Admission plugins whose decision depends on other objects.

They are the built-in plugins that kube-apiserver enables by default, as far as they
matter here: ServiceAccount, Priority, LimitRanger, and the defaults of storage,
ingress and runtime classes.

A plugin mutates an object before validation, or validates it after. Plugins know
no store; they read other objects through a `Lister`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lamina.objects.types import Made, Obj
from lamina.server.admission.plugins import classes, limit_ranger, priority, service_accounts, topology_labels
from lamina.server.admission.plugins.lister import Denied, Lister

__all__ = ["PLUGIN_BUCKETS", "Denied", "Lister", "mutate", "validate"]


def mutate(bucket: str, obj: Made, lookup: Lister, suffix: str) -> None:
    """Run the mutating plugins on a new object; raises Denied. `suffix` is five random letters."""
    for mutator in _MUTATORS.get(bucket, ()):
        mutator(obj, lookup, suffix)


def validate(bucket: str, new: Obj, old: Obj | None, lookup: Lister) -> None:
    """Run the validating plugins on a new or changed object; raises Denied."""
    for validator in _VALIDATORS.get(bucket, ()):
        validator(new, old, lookup)


_Mutator = Callable[[Made, Lister, str], None]
_Validator = Callable[[Obj, Obj | None, Lister], None]

_MUTATORS: Final[Mapping[str, Sequence[_Mutator]]] = {
    "pods": (
        limit_ranger.set_pod_limits,
        service_accounts.set_service_account,
        priority.set_priority,
        service_accounts.add_default_tolerations,
        classes.set_runtime_class,
        topology_labels.set_topology_labels,
    ),
    "persistentvolumeclaims": (classes.set_storage_class,),
    "ingresses.networking.k8s.io": (classes.set_ingress_class,),
}
_VALIDATORS: Final[Mapping[str, Sequence[_Validator]]] = {
    "pods": (limit_ranger.validate_pod, classes.validate_runtime_class),
    "persistentvolumeclaims": (limit_ranger.validate_claim, classes.validate_resize),
    "priorityclasses.scheduling.k8s.io": (priority.validate_class,),
}
PLUGIN_BUCKETS: Final = frozenset((*_MUTATORS, *_VALIDATORS))
"""The buckets of kinds that have plugins."""
