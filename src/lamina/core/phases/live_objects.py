"""The live objects of phases: how they are followed, and which of them were found."""

from __future__ import annotations

from collections.abc import Iterable

from lamina.core.model.queries import Answers, Follow, Listed
from lamina.core.phases.manifest import Manifest, ObjectKey
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.types import Obj


def follows(wanted: Iterable[Manifest], cluster: str = "") -> tuple[Follow, ...]:
    """Return the queries that follow all of these objects, one for each kind and namespace."""
    names: dict[tuple[Kind, str], dict[str, None]] = {}
    for one in wanted:
        if one.kind is not None and one.key.name and (one.key.namespace or not one.kind.namespaced):
            names.setdefault((one.kind, one.key.namespace), {})[one.key.name] = None
    return tuple(
        Follow(
            kind=kind,
            namespaces=(namespace,) if kind.namespaced else None,
            names=tuple(sorted(those)),
            cluster=cluster,
        )
        for (kind, namespace), those in names.items()
    )


def live_objects(wanted: Iterable[Manifest], answers: Answers, cluster: str = "") -> dict[ObjectKey, Obj]:
    """Return those of these objects that were found, by their keys."""
    found: dict[ObjectKey, Obj] = {}
    for query in follows(wanted, cluster):
        answer = answers.get(query)
        for obj in answer.objects if isinstance(answer, Listed) else ():
            key = ObjectKey(query.kind.group, query.kind.kind, meta.namespace(obj), meta.name(obj))
            found[key] = obj
    return found


def unfollowed(wanted: Iterable[Manifest], answers: Answers, cluster: str = "") -> tuple[Follow, ...]:
    """Return the queries that follow these objects, as far as they have not been answered."""
    return tuple(one for one in follows(wanted, cluster) if one not in answers)
