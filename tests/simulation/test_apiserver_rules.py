"""Rules of an API server that simulated clusters keep: namespaces, versions of an apply, field managers, lists."""

import pytest

from lamina.core.model.plan import Apply, Create, Patch
from lamina.core.model.queries import DryRun, Found, Listed, ReadAll
from lamina.errors import Conflict
from lamina.objects import meta
from lamina.objects.selectors import from_labels
from lamina.objects.types import Made
from lamina.simulation import SimulatedCluster
from lamina.simulation.admission_adapter import AdmissionAdapter, builtin
from lamina.simulation.cluster.kinds import CONFIG_MAP, NAMESPACE, make


def managers(obj: Made) -> list[tuple[str, str]]:
    return [(one["manager"], one["operation"]) for one in obj["metadata"].get("managedFields") or ()]


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    made = SimulatedCluster().create(
        {**make(NAMESPACE, "team"), "metadata": {"name": "team", "namespace": "x"}}
    )

    assert "namespace" not in made["metadata"]


def test_an_apply_of_another_version_or_object_is_a_conflict() -> None:
    cluster = SimulatedCluster()
    live = cluster.create(make(CONFIG_MAP, "cm", data={"a": "1"}))
    applied = make(CONFIG_MAP, "cm", data={"a": "2"})

    for stale in ({"resourceVersion": "999"}, {"uid": "another"}):
        with pytest.raises(Conflict):
            cluster.perform(Apply(obj={**applied, "metadata": {**applied["metadata"], **stale}}, force=True))
    current = {"resourceVersion": meta.resource_version(live), "uid": meta.uid(live)}
    cluster.perform(Apply(obj={**applied, "metadata": {**applied["metadata"], **current}}, force=True))

    assert cluster.get(meta.ref(live))["data"] == {"a": "2"}


def test_an_apply_that_names_a_version_creates_nothing() -> None:
    applied = make(CONFIG_MAP, "cm")

    with pytest.raises(Conflict):
        SimulatedCluster().apply({**applied, "metadata": {**applied["metadata"], "resourceVersion": "1"}})


def test_what_a_controller_creates_has_managed_fields_that_it_may_rewrite() -> None:
    cluster = SimulatedCluster(tracks_creates=True)
    cluster.perform(Create(obj=make(CONFIG_MAP, "cm", data={"a": "1"})), "ctl")
    live = cluster.get(meta.ref(make(CONFIG_MAP, "cm")))
    assert managers(live) == [("ctl", "Update")]

    entry = {**live["metadata"]["managedFields"][0], "operation": "Apply"}
    patch = {"metadata": {"managedFields": [entry]}}
    cluster.perform(Patch(ref=meta.ref(live), uid=meta.uid(live), version="", patch=patch), "ctl")

    assert managers(cluster.get(meta.ref(live))) == [("ctl", "Apply")]


@pytest.mark.parametrize("whole", [False, True])
def test_a_list_has_the_objects_with_its_labels(whole: bool) -> None:
    cluster = SimulatedCluster()
    for name in ("one", "two"):
        cluster.create(make(CONFIG_MAP, name, labels={"app": name}, data={"a": "1"}))

    answer = cluster.answer(ReadAll(CONFIG_MAP, "default", whole=whole, labels=from_labels({"app": "two"})))

    assert isinstance(answer, Listed)
    assert [meta.name(one) for one in answer.objects] == ["two"]
    assert [("data" in one) for one in answer.objects] == [whole]


def test_a_dry_run_of_an_apply_that_changes_nothing_has_the_defaults_of_what_it_applies() -> None:
    """An atomic list is applied as it is written, and has defaults of its own."""
    cluster = SimulatedCluster(kinds=builtin(), tracks_creates=True)
    AdmissionAdapter(cluster)
    claim = {
        "metadata": {"name": "data"},
        "spec": {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]},
    }
    wanted: Made = {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}},
            "template": {
                "metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "db", "image": "db"}]},
            },
            "volumeClaimTemplates": [claim],
        },
    }  # fmt: skip
    live = cluster.apply(wanted, manager="ctl")

    found = cluster.answer(DryRun(obj=wanted, manager="ctl", key="again"))

    assert isinstance(found, Found)
    assert found.obj["spec"] == live["spec"]
    assert live["spec"]["volumeClaimTemplates"][0]["spec"]["volumeMode"] == "Filesystem"


def test_annotations_raise_the_generation_of_a_deployment_and_labels_do_not() -> None:
    cluster = SimulatedCluster(kinds=builtin())
    AdmissionAdapter(cluster)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx:1"}]}}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    ref = meta.ref(cluster.create(web))
    assert meta.generation(cluster.get(ref)) == 1

    cluster.patch(ref, {"metadata": {"annotations": {"note": "one"}}})
    assert meta.generation(cluster.get(ref)) == 2
    cluster.patch(ref, {"metadata": {"labels": {"note": "one"}}})
    assert meta.generation(cluster.get(ref)) == 2
