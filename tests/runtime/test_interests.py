"""Who asked to be told of what."""

from lamina.core.questions import Follow
from lamina.core.world import Change
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.selectors import parse_label_selector
from lamina.objects.types import Made, Obj, Ref
from lamina.runtime.interests import Interests

SECRET = Kind("v1", "Secret", "secrets", True)
A, B = (Ref("v1", "ConfigMap", "default", name) for name in "ab")


def secret(name: str, namespace: str = "default", **labels: str) -> Made:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def concerned(interests: Interests, before: Made | None, after: Made | None) -> set[Ref]:
    return set(interests.concerned(Change(SECRET, before, after)))


def test_a_change_concerns_those_whom_it_matches_before_or_after() -> None:
    interests = Interests()
    interests.set(A, [Follow(kind=SECRET, labels=parse_label_selector("tier=a"))])
    interests.set(B, [Follow(kind=SECRET, namespaces=("default",), names=("one",))])

    assert concerned(interests, None, secret("one", tier="a")) == {A, B}
    assert concerned(interests, secret("two", tier="a"), secret("two", tier="b")) == {A}
    assert concerned(interests, secret("one", "other"), None) == set()


def test_who_asks_for_nothing_is_told_of_nothing() -> None:
    interests = Interests()
    interests.set(A, [Follow(kind=SECRET), Follow(kind=SECRET, names=("one",))])
    interests.set(A, ())

    assert concerned(interests, None, secret("one")) == set()
    assert list(interests) == []


def test_who_asks_by_name_and_for_all_is_told_once() -> None:
    interests = Interests()
    interests.set(A, [Follow(kind=SECRET), Follow(kind=SECRET, names=("one", "two"))])
    interests.set(B, [Follow(kind=SECRET, names=("two",))])

    assert list(interests.concerned(Change(SECRET, None, secret("one")))) == [A]
    assert sorted(interests.concerned(Change(SECRET, None, secret("two")))) == [A, B]
    interests.set(A, [Follow(kind=SECRET, names=("one",))])
    assert concerned(interests, None, secret("two")) == {B}


def test_what_is_news_to_some_only_concerns_those_and_is_found_out_once() -> None:
    found: list[tuple[str, ...]] = []

    def parties(before: Obj, after: Obj) -> tuple[str, ...] | None:
        whom = meta.labels(after).get("to")
        found.append((whom,) if whom else ())
        return (whom,) if whom is not None else None

    interests = Interests()
    interests.set(A, [Follow(kind=SECRET, names=("one",), parties=parties, party="a")])
    interests.set(B, [Follow(kind=SECRET, names=("one",), parties=parties, party="b")])

    assert concerned(interests, secret("one"), secret("one", to="b")) == {B}
    assert len(found) == 1
    assert concerned(interests, secret("one"), secret("one", to="c")) == set()
    assert concerned(interests, secret("one"), secret("one", tier="a")) == {A, B}
    assert concerned(interests, None, secret("one", to="b")) == {A, B}, "that it came is news to everybody"
    assert concerned(interests, secret("one", to="b"), None) == {A, B}, "and that it went"


def test_who_follows_in_two_ways_is_told_if_it_is_news_in_one() -> None:
    interests = Interests()
    interests.set(A, [Follow(kind=SECRET, parties=lambda before, after: ()), Follow(kind=SECRET)])

    assert concerned(interests, secret("one"), secret("one", tier="a")) == {A}
