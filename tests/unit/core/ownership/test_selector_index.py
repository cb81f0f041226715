"""Which objects a selector matches, and which selectors match an object."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.ownership.selector_index import (
    by_label,
    by_spec_selector,
    by_uid,
    labelled,
    orphans,
    selected,
    selecting,
    selector_keys,
)
from lamina.objects import meta
from lamina.objects.kinds import Kind
from lamina.objects.selectors import LabelSelector, from_object, parse_label_selector
from lamina.objects.types import Made, Obj
from lamina.runtime.cache.lister import Lister
from tests.unit.core.ownership.worlds import PART, ROOT, THING, made, names, part, world

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
TERMS = st.one_of(
    st.builds(lambda key, value: {"matchLabels": {key: value}}, st.sampled_from("ab"), st.sampled_from("xy")),
    st.builds(
        lambda key, operator: {
            "matchExpressions": [{"key": key, "operator": operator, "values": ["x", "y"]}]
        },
        st.sampled_from("ab"),
        st.sampled_from(("In", "NotIn")),
    ),
    st.builds(
        lambda key, operator: {"matchExpressions": [{"key": key, "operator": operator}]},
        st.sampled_from("ab"),
        st.sampled_from(("Exists", "DoesNotExist")),
    ),
)
NAMESPACES = st.sampled_from(("one", "two"))


def adopters(seen: Lister, kind: Kind, orphan: Obj) -> list[Obj]:
    """Return the owners of a kind that select an orphan."""
    namespace = meta.namespace(orphan) if kind.namespaced else ""
    found = selecting(seen, kind.group_kind, by_spec_selector, selector_of, namespace, meta.labels(orphan))
    return list(found)


def selector_of(owner: Obj) -> LabelSelector:
    return from_object(owner["spec"]["selector"])


@given(
    parts=st.lists(st.tuples(NAMESPACES, LABELS, st.booleans()), max_size=24),
    selectors=st.lists(st.tuples(NAMESPACES, TERMS), max_size=6),
)
def test_an_index_finds_what_a_comparison_with_all_finds(
    parts: list[tuple[str, dict[str, str], bool]], selectors: list[tuple[str, Made]]
) -> None:
    owner = {"ownerReferences": [{"uid": "other", "controller": True}]}
    free = [
        made(PART, f"p{number}", namespace, metadata={"labels": labels, **({} if is_free else owner)})
        for number, (namespace, labels, is_free) in enumerate(parts)
    ]
    parents = [
        made(kind, f"t{number}", namespace if kind.namespaced else "", spec={"selector": selector})
        for number, (namespace, selector) in enumerate(selectors)
        for kind in (THING, ROOT)
    ]
    seen = world(*free, *parents)
    for parent in parents:
        selector = from_object(parent["spec"]["selector"])
        expected = {
            meta.name(one)
            for one in free
            if not meta.owner_refs(one)
            and selector.matches(meta.labels(one))
            and meta.namespace(parent) in ("", meta.namespace(one))
        }
        found = [meta.name(one) for one in orphans(seen, PART.group_kind, meta.namespace(parent), selector)]
        assert sorted(found) == sorted(expected)
        kind = THING if parent["kind"] == "Thing" else ROOT
        for one in free:
            selects = selector.matches(meta.labels(one)) and meta.namespace(parent) in (
                "",
                meta.namespace(one),
            )
            assert (meta.name(parent) in names(adopters(seen, kind, one))) is selects
        assert names(selected(seen, PART.group_kind, "one", selector)) == sorted(
            meta.name(one)
            for one in free
            if meta.namespace(one) == "one" and selector.matches(meta.labels(one))
        )


def test_an_owner_is_found_by_its_uid() -> None:
    seen = world(made(THING, "t", "one"), made(THING, "u", "one"))

    assert names(seen.by_index(THING.group_kind, by_uid, "uid-t")) == ["t"]
    assert names(seen.by_index(THING.group_kind, by_uid, "")) == []


@pytest.mark.parametrize(
    "spec", ["nonsense", {"selector": "x"}, {"selector": {"matchLabels": 3}}, {"selector": {}}, None]
)
def test_an_owner_whose_selector_is_empty_or_cannot_be_read_selects_nothing(spec: Any) -> None:
    orphan = made(PART, "p", "one", metadata={"labels": {"a": "x"}})

    assert list(adopters(world(made(THING, "t", "one", spec=spec)), THING, orphan)) == []


@pytest.mark.parametrize(
    ("selector", "keys"),
    [
        ("a=x",           ("one/a=x",)),
        ("a==x,b=y",      ("one/a=x",)),
        ("a in (x,y)",    ("one/a=x", "one/a=y")),
        ("a!=x,b=y",      ("one/b=y",)),
        ("a",             ("one/*=*",)),
        ("!a",            ("one/*=*",)),
        ("a notin (x)",   ("one/*=*",)),
        ("",              ("one/*=*",)),
    ],
)  # fmt: skip
def test_under_which_keys_a_selector_is_indexed(selector: str, keys: tuple[str, ...]) -> None:
    assert sorted(selector_keys("one", parse_label_selector(selector))) == sorted(keys)


def test_an_object_is_indexed_by_each_of_its_labels() -> None:
    assert list(by_label(part(a="x", b="y"))) == [labelled("one", "a", "x"), labelled("one", "b", "y")]
    assert list(by_label(part())) == []


def test_objects_that_a_selector_matches_come_in_the_order_of_their_names() -> None:
    seen = world(part("q", a="x"), part("p", a="x"), part("r", a="y"), part("o", "two", a="x"))

    assert names(selected(seen, PART.group_kind, "one", parse_label_selector("a=x"))) == ["p", "q"]
    assert names(selected(seen, PART.group_kind, "one", parse_label_selector("a"))) == ["p", "q", "r"]


def test_an_owner_that_requires_no_value_selects_beside_those_that_do() -> None:
    any_a = made(
        THING, "any", "one", spec={"selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
    )
    red = made(THING, "red", "one", spec={"selector": {"matchLabels": {"a": "red"}}})

    assert names(adopters(world(any_a, red), THING, part(a="red"))) == ["red", "any"]
    assert names(adopters(world(any_a, red), THING, part(a="blue"))) == ["any"]
    assert names(adopters(world(any_a, red), THING, part(b="red"))) == []


@pytest.mark.parametrize("count", [1, 16, 17, 40])
def test_few_orphans_and_many_are_found_alike(count: int) -> None:
    seen = world(*(part(f"p{number:02}", a="x" if number % 2 else "y") for number in range(count)))

    found = orphans(seen, PART.group_kind, "one", parse_label_selector("a=x"))

    assert names(found) == [f"p{number:02}" for number in range(count) if number % 2]


def test_an_orphan_that_is_being_deleted_is_left_out() -> None:
    seen = world(part("p", a="x"), part("q", a="x", deleting=True))

    assert names(orphans(seen, PART.group_kind, "one", parse_label_selector("a=x"))) == ["p"]
