"""The indexer, checked against a plain dict."""

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis.strategies import booleans, lists, sampled_from, tuples

from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import GroupKind, Obj, Ref
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.lister import Lister

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True)
SECRET = Kind("v1", "Secret", "secrets", True)


def made(kind: Kind, namespace: str, name: str, owners: list[str]) -> dict[str, Any]:
    refs = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid, "controller": uid == "p"}
        for uid in owners
    ]
    metadata = {"namespace": namespace, "name": name, "uid": f"{namespace}-{name}", "ownerReferences": refs}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}


@given(
    lists(
        tuples(
            booleans(),
            sampled_from([CONFIG_MAP, SECRET]),
            sampled_from("xy"),
            sampled_from("abc"),
            lists(sampled_from("pqr"), max_size=2, unique=True),
        ),
        max_size=30,
    )
)
def test_every_index_says_what_a_search_would_say(
    steps: list[tuple[bool, Kind, str, str, list[str]]],
) -> None:
    indexers = {kind.group_kind: Indexer(kind) for kind in (CONFIG_MAP, SECRET)}
    memory = Lister(DeletedUids())
    memory.set_indexers(Kinds(indexer.kind for indexer in indexers.values()), indexers)
    plain: dict[Ref, dict[str, Any]] = {}

    for number, (stays, kind, namespace, name, owners) in enumerate(steps):
        if number == len(steps) // 2:
            # What is asked for in the middle is kept up to date from then on.
            memory.by_index(kind.group_kind, by_owners, "p")
            memory.grouped(kind.group_kind, likeness, "p")
        obj = made(kind, namespace, name, owners)
        ref = meta.ref(obj)
        if stays:
            assert indexers[kind.group_kind].put(obj) == plain.get(ref)
            plain[ref] = obj
        else:
            assert indexers[kind.group_kind].drop(namespace, name) == plain.pop(ref, None)

    assert {ref: memory.get(ref) for ref in plain} == plain
    for kind in (CONFIG_MAP, SECRET):
        of_kind = [obj for ref, obj in plain.items() if ref.kind == kind.kind]
        assert memory.count(kind.group_kind) == len(of_kind)
        assert _same(memory.every(kind.group_kind), of_kind)
        for namespace in "xy":
            there = [obj for obj in of_kind if meta.namespace(obj) == namespace]
            assert _same(memory.every(kind.group_kind, namespace), there)
            unclaimed = [
                obj for obj in there if "p" not in [one["uid"] for one in obj["metadata"]["ownerReferences"]]
            ]
            assert _same(memory.unclaimed(kind.group_kind, namespace), unclaimed)
    for kind in (CONFIG_MAP, SECRET):
        for owner in "pqr":
            of_kind = [obj for ref, obj in plain.items() if ref.kind == kind.kind]
            assert _same(
                memory.by_index(kind.group_kind, by_owners, owner),
                [obj for obj in of_kind if owner in set(by_owners(obj))],
            )
            counted_alike: dict[object, list[dict[str, Any]]] = {}
            for obj in of_kind:
                if (said := likeness(obj)) is not None and said[0] == owner:
                    counted_alike.setdefault(said[1], []).append(obj)
            groups = memory.grouped(kind.group_kind, likeness, owner)
            assert groups.keys() == counted_alike.keys()
            assert all(_same(group, counted_alike[one]) for one, group in groups.items())
    for owner in "pqr":
        owned = [obj for obj in plain.values() if owner in [ref["uid"] for ref in meta.owner_refs(obj)]]
        assert _same(memory.owned_by(owner), owned)
    for namespace in "xy":
        found = {kind.kind: len(there) for kind, there in memory.in_namespace(namespace)}
        counted: dict[str, int] = {}
        for ref in plain:
            if ref.namespace == namespace:
                counted[ref.kind] = counted.get(ref.kind, 0) + 1
        assert found == counted


def by_owners(obj: Obj) -> Iterator[str]:
    for one in meta.owner_refs(obj):
        yield one["uid"]


def likeness(obj: Obj) -> tuple[str, int] | None:
    """Count objects under their first owner, by how many they have."""
    owners = meta.owner_refs(obj)
    return (owners[0]["uid"], len(owners)) if owners else None


def _same(found: Any, wanted: list[dict[str, Any]]) -> bool:
    return sorted(map(meta.ref, found)) == sorted(map(meta.ref, wanted))


def test_an_object_is_found_whatever_version_it_is_asked_for_in() -> None:
    memory = Lister(DeletedUids())
    deployment = Kind("apps/v1", "Deployment", "deployments", True)
    indexer = Indexer(deployment)
    indexer.put(made(deployment, "x", "a", []))
    memory.set_indexers(Kinds([deployment]), {deployment.group_kind: indexer})

    assert memory.get(Ref("apps/v1beta1", "Deployment", "x", "a")) is not None
    assert memory.get(Ref("v1", "Deployment", "x", "a")) is None
    assert memory.every(GroupKind("", "Nothing")) == ()


def test_the_oldest_ends_are_forgotten_first() -> None:
    gone = DeletedUids(capacity=2)
    for uid in "abc":
        gone.add(uid)

    assert ["a" in gone, "b" in gone, "c" in gone] == [False, True, True]
