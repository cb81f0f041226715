"""Actions, changes, queries and views name the cluster they concern."""

import pytest

from lamina.core.model.plan import (
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
from lamina.core.model.queries import Call, DryRun, Follow, Query, Read, ReadAll, Review, answering_cluster
from lamina.core.model.world import Change
from lamina.objects import meta
from lamina.objects.kinds import Kind, Kinds
from lamina.objects.types import Made, Ref
from lamina.runtime.cache.indexer import DeletedUids, Indexer
from lamina.runtime.cache.lister import Lister

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
    asked: list[Query] = [
        Read(AT_HOME._replace(cluster=cluster)),
        ReadAll(CONFIG_MAP, "default", cluster),
        Follow(kind=CONFIG_MAP, cluster=cluster),
        DryRun(obj={}, manager="m", key="k", cluster=cluster),
        Review(body={}, key="k", cluster=cluster),
    ]

    assert {answering_cluster(one) for one in asked} == {cluster}
    assert answering_cluster(Call(url="http://hook", body=b"", seconds=1.0, purpose="sync")) == ""


def test_the_same_dry_run_on_another_cluster_or_as_another_user_is_another() -> None:
    one = DryRun(obj={"a": 1}, manager="m", key="k")

    assert one == DryRun(obj={"b": 2}, manager="n", key="k")
    assert len({one, *(DryRun(obj={}, manager="m", key="k", **other) for other in _OTHERS)}) == 4


_OTHERS = ({"cluster": "hub"}, {"user": "ann"}, {"creates": True})


def remembered(colour: str, others: dict[str, Lister]) -> Lister:
    shelf = Indexer(CONFIG_MAP)
    shelf.put(made(colour))
    memory = Lister(DeletedUids(), others)
    memory.set_indexers(Kinds([CONFIG_MAP]), {CONFIG_MAP.group_kind: shelf})
    return memory


def test_every_picture_leads_to_every_other() -> None:
    others: dict[str, Lister] = {}
    home = remembered("red", others)
    others |= {"east": remembered("green", others), "west": remembered("blue", others)}

    assert set(home.clusters) == {"east", "west"}
    for world in (home, *others.values()):
        assert world.on("") is world
        assert world.on("east") is others["east"]
        found = world.get(AT_HOME._replace(cluster="west"))
        assert found is not None and found["data"] == {"colour": "blue"}
    assert meta.ref(home.on("east").get(AT_HOME) or {}) == AT_HOME


def test_the_snapshot_of_an_unknown_cluster_is_empty() -> None:
    home = remembered("red", {})
    moon = home.on("moon")

    assert home.get(AT_HOME._replace(cluster="moon")) is None
    assert not moon.every(CONFIG_MAP.group_kind) and not list(moon.kinds)
    assert not moon.is_gone("u")
