"""A world in which some objects are edited answers as one in which they were written."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.model.edited_world import EditedWorld
from lamina.core.model.world import World
from lamina.objects import meta
from lamina.objects.types import GroupKind, Made, Obj
from tests.unit.core.ownership.worlds import KINDS, PART, ROOT, THING, made, part, reference, world

NAMESPACES = ("one", "two")


def by_color(obj: Obj) -> Iterable[str]:
    color = meta.labels(obj).get("color")
    return (color,) if color else ()


def by_namespace_and_color(obj: Obj) -> tuple[str, str]:
    return meta.namespace(obj), meta.labels(obj).get("color", "")


@st.composite
def parts(draw: st.DrawFn) -> Made:
    owners = [reference(name) for name in draw(st.lists(st.sampled_from("xy"), unique=True, max_size=1))]
    return made(
        PART,
        draw(st.sampled_from("abc")),
        draw(st.sampled_from(NAMESPACES)),
        metadata={
            "labels": draw(st.sampled_from([{}, {"color": "red"}, {"color": "blue"}])),
            "ownerReferences": owners,
        },
    )


def things() -> st.SearchStrategy[Made]:
    return st.builds(
        lambda name, namespace, size: made(THING, name, namespace, spec={"size": size}),
        st.sampled_from("ab"),
        st.sampled_from(NAMESPACES),
        st.integers(0, 1),
    )


OBJECTS = st.lists(st.one_of(parts(), things()), max_size=6)


def written(before: list[Made], edited: list[Made]) -> World:
    """Return the world as it is once the edits are stored."""
    return world(*{meta.ref(obj): obj for obj in (*before, *edited)}.values())


def shown(objects: Iterable[Obj]) -> list[str]:
    return sorted(map(repr, objects))


@given(before=OBJECTS, edited=OBJECTS)
def test_an_edited_world_is_the_world_in_which_the_edits_were_stored(
    before: list[Made], edited: list[Made]
) -> None:
    seen = EditedWorld(written(before, []), edited)
    expected = written(before, edited)

    for kind in (kind.group_kind for kind in KINDS):
        assert seen.count(kind) == expected.count(kind)
        for namespace in (None, *NAMESPACES):
            assert shown(seen.every(kind, namespace)) == shown(expected.every(kind, namespace))
            assert shown(seen.unclaimed(kind, namespace)) == shown(expected.unclaimed(kind, namespace))
        for color in ("red", "blue"):
            assert shown(seen.by_index(kind, by_color, color)) == shown(
                expected.by_index(kind, by_color, color)
            )
        for namespace in NAMESPACES:
            ours = seen.grouped(kind, by_namespace_and_color, namespace)
            theirs = expected.grouped(kind, by_namespace_and_color, namespace)
            assert {key: shown(those) for key, those in ours.items()} == {
                key: shown(those) for key, those in theirs.items()
            }
    for uid in ("uid-x", "uid-y"):
        assert shown(seen.owned_by(uid)) == shown(expected.owned_by(uid))
        assert shown(seen.owned_by(uid, PART.group_kind)) == shown(expected.owned_by(uid, PART.group_kind))
    for obj in (*before, *edited):
        assert seen.get(meta.ref(obj)) == expected.get(meta.ref(obj))
    for namespace in NAMESPACES:
        found = {kind.kind: shown(those) for kind, those in seen.in_namespace(namespace) if those}
        assert found == {kind.kind: shown(those) for kind, those in expected.in_namespace(namespace) if those}


def test_it_serves_the_same_kinds_and_knows_the_same_clusters() -> None:
    under = world(part("a"))
    seen = EditedWorld(under, [part("b")])

    assert (seen.kinds, seen.clusters) == (under.kinds, under.clusters)
    assert seen.on("") is seen


def test_an_object_of_another_cluster_is_not_replaced() -> None:
    edited = part("a", color="red")
    seen = EditedWorld(world(part("a")), [edited])

    assert seen.get(meta.ref(edited)) == edited
    assert seen.get(meta.ref(edited, "elsewhere")) is None


@pytest.mark.parametrize("kind", [PART.group_kind, ROOT.group_kind])
def test_without_edits_it_is_the_world_underneath(kind: GroupKind) -> None:
    under = world(part("a"), part("b", color="red"))
    seen = EditedWorld(under, [])

    assert shown(seen.every(kind)) == shown(under.every(kind))
    assert not seen.is_gone("uid-a")
