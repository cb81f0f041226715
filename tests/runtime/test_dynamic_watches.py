"""The owners that dynamic watches requeue for a change."""

from typing import ClassVar

import pytest

from lamina.core.model.queries import Follow
from lamina.core.model.world import Change
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.selectors import parse_label_selector
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.cache.dynamic_watches import DynamicWatches

SECRET = Kind("v1", "Secret", "secrets", True)
A, B = (Ref("v1", "ConfigMap", "default", name) for name in "ab")


def secret(name: str, namespace: str = "default", **labels: str) -> Made:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def concerned(interests: DynamicWatches, before: Made | None, after: Made | None) -> set[Ref]:
    return set(interests.keys_for(Change(SECRET, before, after)))


def test_a_change_concerns_the_owners_it_matches_before_or_after() -> None:
    interests = DynamicWatches()
    interests.set(A, [Follow(kind=SECRET, labels=parse_label_selector("tier=a"))])
    interests.set(B, [Follow(kind=SECRET, namespaces=("default",), names=("one",))])

    assert concerned(interests, None, secret("one", tier="a")) == {A, B}
    assert concerned(interests, secret("two", tier="a"), secret("two", tier="b")) == {A}
    assert concerned(interests, secret("one", "other"), None) == set()


def test_an_owner_without_queries_is_not_requeued() -> None:
    interests = DynamicWatches()
    interests.set(A, [Follow(kind=SECRET), Follow(kind=SECRET, names=("one",))])
    interests.set(A, ())

    assert concerned(interests, None, secret("one")) == set()
    assert list(interests) == []


def test_an_owner_that_follows_by_name_and_all_is_requeued_once() -> None:
    interests = DynamicWatches()
    interests.set(A, [Follow(kind=SECRET), Follow(kind=SECRET, names=("one", "two"))])
    interests.set(B, [Follow(kind=SECRET, names=("two",))])

    assert list(interests.keys_for(Change(SECRET, None, secret("one")))) == [A]
    assert sorted(interests.keys_for(Change(SECRET, None, secret("two")))) == [A, B]
    interests.set(A, [Follow(kind=SECRET, names=("one",))])
    assert concerned(interests, None, secret("two")) == {B}


def test_what_is_news_to_some_only_concerns_those_and_is_found_out_once() -> None:
    found: list[tuple[str, ...]] = []

    def parties(before: Obj, after: Obj) -> tuple[str, ...] | None:
        whom = meta.labels(after).get("to")
        found.append((whom,) if whom else ())
        return (whom,) if whom is not None else None

    interests = DynamicWatches()
    interests.set(A, [Follow(kind=SECRET, names=("one",), affects=parties, subscriber="a")])
    interests.set(B, [Follow(kind=SECRET, names=("one",), affects=parties, subscriber="b")])

    assert concerned(interests, secret("one"), secret("one", to="b")) == {B}
    assert len(found) == 1
    assert concerned(interests, secret("one"), secret("one", to="c")) == set()
    assert concerned(interests, secret("one"), secret("one", tier="a")) == {A, B}
    assert concerned(interests, None, secret("one", to="b")) == {A, B}, "its creation concerns every follower"
    assert concerned(interests, secret("one", to="b"), None) == {A, B}, "and its deletion"


def test_an_owner_that_follows_twice_is_requeued_if_one_query_is_affected() -> None:
    interests = DynamicWatches()
    interests.set(A, [Follow(kind=SECRET, affects=lambda before, after: ()), Follow(kind=SECRET)])

    assert concerned(interests, secret("one"), secret("one", tier="a")) == {A}


class Namespaces(tuple[str, ...]):
    """The namespaces of a query, which note what they are compared with."""

    compared: ClassVar[list[object]] = []

    def __contains__(self, namespace: object) -> bool:
        self.compared.append(namespace)
        return super().__contains__(namespace)


@pytest.mark.parametrize("names", [None, ("config",)])
def test_a_change_is_compared_with_the_queries_of_its_namespace_however_many_others_there_are(
    names: tuple[str, ...] | None,
) -> None:
    interests, refs = DynamicWatches(), [Ref("v1", "ConfigMap", f"n{number}", "a") for number in range(100)]
    for ref in refs:
        interests.set(ref, [Follow(kind=SECRET, namespaces=Namespaces((ref.namespace,)), names=names)])

    Namespaces.compared.clear()
    assert concerned(interests, None, secret("config", "n7")) == {refs[7]}
    assert Namespaces.compared == ["n7"]


def test_a_query_of_several_names_and_namespaces_is_found_in_each() -> None:
    interests = DynamicWatches()
    interests.set(A, [Follow(kind=SECRET, namespaces=("one", "two"), names=("x", "y"))])
    interests.set(B, [Follow(kind=SECRET, namespaces=(), names=("x",)), Follow(kind=SECRET, names=())])

    for namespace in ("one", "two"):
        for name in "xy":
            assert concerned(interests, None, secret(name, namespace)) == {A}
    assert concerned(interests, None, secret("x", "three")) == set()
    assert concerned(interests, None, secret("z", "one")) == set()
    interests.set(A, ())
    interests.set(B, ())
    assert not interests._index
