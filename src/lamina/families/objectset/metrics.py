"""The metrics of sets and ObjectSetPhases, under the names of upstream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from lamina.core.model.plan import Gauge
from lamina.core.model.queries import Answers, Listed
from lamina.core.phases.live_objects import follows
from lamina.core.phases.manifest import Manifest
from lamina.families.objectset import lineage
from lamina.families.objectset.labels import INSTANCE
from lamina.objects import conditions, meta
from lamina.objects.kinds import Kind
from lamina.objects.times import moment
from lamina.objects.types import Obj


def since(obj: Obj) -> Iterator[Gauge]:
    """Yield when a set was created and when it succeeded; one that is archived or being deleted has neither."""
    if not lineage.is_live(obj):
        return
    labels = (
        ("pko_name", meta.name(obj)),
        ("pko_namespace", meta.namespace(obj)),
        ("pko_package_instance", meta.labels(obj).get(INSTANCE) or ""),
    )
    found = conditions.find(conditions.of(obj), "Succeeded")
    created = meta.metadata(obj).get("creationTimestamp")
    succeeded = found.get("lastTransitionTime") if found is not None else None
    for name, help, at in (
        ("created", "When a set was created.", moment(created)),
        ("succeeded", "When a set succeeded.", moment(succeeded)),
    ):
        if at is not None:
            metric = f"package_operator_object_set_{name}_timestamp_seconds"
            yield Gauge(name=metric, help=help, labels=labels, value=at.timestamp())


def cached(obj: Obj, wanted: Iterable[Manifest], answers: Answers, cluster: str = "") -> Iterator[Gauge]:
    """
    Yield how many kinds an owner follows, and how many of its objects of each are in the cache.

    Upstream has a cache for each owner; here owners share those of a kind, and each counts what it follows.
    """
    found: Counter[Kind] = Counter()
    for query in follows(wanted, cluster):
        answer = answers.get(query)
        if isinstance(answer, Listed):
            found[query.kind] += len(answer.objects)
    if not found:
        return
    owner = ("owner", meta.uid(obj))
    yield Gauge(
        name="package_operator_managed_cache_informers_total",
        help="The kinds of objects that an owner follows.",
        labels=(owner,),
        value=len(found),
    )
    for kind, objects in found.items():
        yield Gauge(
            name="package_operator_managed_cache_objects_total",
            help="The objects of an owner in the cache, by kind.",
            labels=(owner, ("gvk", _written(kind))),
            value=objects,
        )


def _written(kind: Kind) -> str:
    """Return a kind as Go prints it."""
    version = kind.api_version.rpartition("/")[2]
    return f"{kind.group}/{version}, Kind={kind.kind}"
