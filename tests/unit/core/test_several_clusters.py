"""What names a cluster: actions, changes, questions, and the pictures they are decided from."""

import pytest

from lamina.core.plan import (
    Action,
    Apply,
    Create,
    DeleteAll,
    Emit,
    Replace,
    change,
    change_metadata,
    delete,
    remove_finalizer,
    set_status,
)
from lamina.core.questions import Call, Follow, Question, Read, ReadAll, Rehearse, Review, asked_of
from lamina.core.world import Change
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Ref
from lamina.runtime.memory import Gone, Memory, Shelf

CONFIG_MAP = Kind("v1", "ConfigMap", "configmaps", True)
AT_HOME = Ref("v1", "ConfigMap", "default", "a")


def made(colour: str = "red") -> Made:
    metadata = {
        "name": "a",
        "namespace": "default",
        "uid": "u",
        "resourceVersion": "5",
        "finalizers": ["f"],
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": colour}}


@pytest.mark.parametrize("cluster", ["", "hub"])
def test_an_action_points_at_its_object_where_it_is(cluster: str) -> None:
    status = set_status(made(), {"phase": "Ready"}, cluster=cluster)
    assert status is not None
    actions: list[Action] = [
        Create(obj=made(), cluster=cluster),
        Replace(obj=made(), cluster=cluster),
        Apply(obj=made(), cluster=cluster),
        Emit(event=made(), cluster=cluster),
        change(made(), {"data": None}, cluster=cluster),
        change_metadata(made(), labels={"a": "b"}, cluster=cluster),
        remove_finalizer(made(), "f", cluster=cluster),
        delete(made(), cluster=cluster),
        status,
    ]

    assert {action.ref for action in actions} == {AT_HOME._replace(cluster=cluster)}
    assert DeleteAll(kind=CONFIG_MAP, namespace="x", cluster=cluster).ref.cluster == cluster
    assert Change(CONFIG_MAP, None, made(), cluster).ref.cluster == cluster


@pytest.mark.parametrize("cluster", ["", "hub"])
def test_a_question_is_put_to_the_cluster_it_names(cluster: str) -> None:
    asked: list[Question] = [
        Read(AT_HOME._replace(cluster=cluster)),
        ReadAll(CONFIG_MAP, "default", cluster),
        Follow(kind=CONFIG_MAP, cluster=cluster),
        Rehearse(obj={}, manager="m", key="k", cluster=cluster),
        Review(body={}, key="k", cluster=cluster),
    ]

    assert {asked_of(one) for one in asked} == {cluster}
    assert asked_of(Call(url="http://hook", body=b"", seconds=1.0, purpose="sync")) == ""


def test_the_same_rehearsal_on_another_cluster_or_as_somebody_else_is_another() -> None:
    one = Rehearse(obj={"a": 1}, manager="m", key="k")

    assert one == Rehearse(obj={"b": 2}, manager="n", key="k")
    assert len({one, *(Rehearse(obj={}, manager="m", key="k", **other) for other in _OTHERS)}) == 4


_OTHERS = ({"cluster": "hub"}, {"user": "ann"}, {"creates": True})


def remembered(colour: str, others: dict[str, Memory]) -> Memory:
    shelf = Shelf(CONFIG_MAP)
    shelf.put(made(colour))
    memory = Memory(Gone(), others)
    memory.arrange(Kinds([CONFIG_MAP]), {CONFIG_MAP.group_kind: shelf})
    return memory


def test_every_picture_leads_to_every_other() -> None:
    others: dict[str, Memory] = {}
    home = remembered("red", others)
    others |= {"east": remembered("green", others), "west": remembered("blue", others)}

    assert set(home.clusters) == {"east", "west"}
    for world in (home, *others.values()):
        assert world.on("") is world
        assert world.on("east") is others["east"]
        found = world.get(AT_HOME._replace(cluster="west"))
        assert found is not None and found["data"] == {"colour": "blue"}
    assert meta.ref(home.on("east").get(AT_HOME) or {}) == AT_HOME


def test_the_picture_of_a_cluster_that_nobody_knows_is_empty() -> None:
    home = remembered("red", {})
    moon = home.on("moon")

    assert home.get(AT_HOME._replace(cluster="moon")) is None
    assert not moon.every(CONFIG_MAP.group_kind) and not list(moon.kinds)
    assert not moon.is_gone("u")
