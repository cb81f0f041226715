"""Who may adopt whom, found without looking at everybody."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.families.metacontroller.matching import adopters, orphans, owner_named
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.selectors import from_object
from lamina.objects.types import Made, Obj
from lamina.runtime.memory import Gone, Memory, Shelf

THING = Kind("ex.com/v1", "Thing", "things", True)
ROOT = Kind("ex.com/v1", "Root", "roots", False)
PART = Kind("v1", "Part", "parts", True)

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


def made(kind: Kind, name: str, namespace: str = "", **more: Any) -> Made:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", **more.pop("metadata", {})}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **more}


def world(*objects: Obj) -> Memory:
    shelves = {kind.group_kind: Shelf(kind) for kind in (THING, ROOT, PART)}
    for obj in objects:
        shelves[next(kind.group_kind for kind in (THING, ROOT, PART) if kind.kind == obj["kind"])].put(obj)
    memory = Memory(Gone())
    memory.arrange(Kinds((THING, ROOT, PART)), shelves)
    return memory


@given(
    parts=st.lists(st.tuples(NAMESPACES, LABELS, st.booleans()), max_size=6),
    selectors=st.lists(st.tuples(NAMESPACES, TERMS), max_size=6),
)
def test_it_finds_whom_a_look_at_everybody_finds(
    parts: list[tuple[str, dict[str, str], bool]], selectors: list[tuple[str, Made]]
) -> None:
    owner = {"ownerReferences": [{"uid": "somebody", "controller": True}]}
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
        for part in (one for one in free if meta.name(one) in expected):
            kind = THING if parent["kind"] == "Thing" else ROOT
            assert meta.name(parent) in {meta.name(one) for one in adopters(seen, kind, part)}


def test_a_parent_is_found_by_the_uid_that_an_orphan_names() -> None:
    seen = world(made(THING, "t", "one"))
    orphan = made(PART, "p", "one", metadata={"labels": {"controller-uid": "uid-t"}})

    assert [meta.name(one) for one in owner_named(seen, THING, orphan)] == ["t"]
    assert list(owner_named(seen, THING, made(PART, "q", "one"))) == []


@pytest.mark.parametrize(
    "spec", ["nonsense", {"selector": "x"}, {"selector": {"matchLabels": 3}}, {"selector": {}}, None]
)
def test_a_parent_without_a_selector_that_makes_sense_adopts_nobody(spec: Any) -> None:
    orphan = made(PART, "p", "one", metadata={"labels": {"a": "x"}})

    assert list(adopters(world(made(THING, "t", "one", spec=spec)), THING, orphan)) == []
