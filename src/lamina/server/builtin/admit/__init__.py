"""
What other objects have to say about a new one.

Most of what a write goes through needs nothing but the object itself. Here is
the rest, as far as a server does it by itself: the account a Pod runs as, the
priority of its class, the limits of its namespace, the class a claim or an
ingress gets when it names none.

A plugin first fills in, before an object is validated, and then judges, after.
None of them knows a store: what others say is asked of a `Lookup`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from lamina.objects.types import Made, Obj
from lamina.server.builtin.admit import accounts, classes, limits, nodes, priorities
from lamina.server.builtin.admit.asking import Lookup, Refusal

__all__ = ["ADMITTED", "Lookup", "Refusal", "fill_in", "judge"]


def fill_in(bucket: str, obj: Made, lookup: Lookup, suffix: str) -> None:
    """Give a new object what it is given by others; raises Refusal. `suffix` is five letters at random."""
    for fill in _FILL.get(bucket, ()):
        fill(obj, lookup, suffix)


def judge(bucket: str, new: Obj, old: Obj | None, lookup: Lookup) -> None:
    """Refuse an object, new or changed, that others have something against; raises Refusal."""
    for judged in _JUDGE.get(bucket, ()):
        judged(new, old, lookup)


_Fill = Callable[[Made, Lookup, str], None]
_Judge = Callable[[Obj, Obj | None, Lookup], None]

_FILL: Final[Mapping[str, Sequence[_Fill]]] = {
    "pods": (
        limits.fill_pod,
        accounts.give_account,
        priorities.give_priority,
        accounts.tolerate_troubles,
        classes.take_runtime,
        nodes.find_place,
    ),
    "persistentvolumeclaims": (classes.give_storage_class,),
    "ingresses.networking.k8s.io": (classes.give_ingress_class,),
}
_JUDGE: Final[Mapping[str, Sequence[_Judge]]] = {
    "pods": (limits.judge_pod, classes.judge_runtime),
    "persistentvolumeclaims": (limits.judge_claim, classes.judge_growth),
    "priorityclasses.scheduling.k8s.io": (priorities.judge_class,),
}
ADMITTED: Final = frozenset((*_FILL, *_JUDGE))
"""The buckets of kinds that others have anything to say about."""
