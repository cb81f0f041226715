"""Specs are parsed into structs, and an invalid one is an error that names the field."""

from collections.abc import Callable
from typing import Any

import pytest

from lamina.errors import SpecError
from lamina.families.objectset.api import (
    ConditionMapping,
    LifecycleState,
    SetObject,
    SetSpec,
    TemplatePhase,
    TemplateSpec,
    read_deployment,
    read_phase,
    read_set,
    read_slice,
)
from lamina.objects.types import Made, Obj

MANIFEST: Made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"k": "v"}}
NULLABLE: Made = {**MANIFEST, "spec": {"limit": None, "items": [None, {"a": None}]}}
PROBE: Made = {
    "selector": {"kind": {"group": "apps", "kind": "Deployment"}},
    "probes": [{"cel": {"rule": "true", "message": "never"}}],
}


def objects(*manifests: Obj) -> list[Obj]:
    return [{"object": manifest} for manifest in manifests]


def deployment(**spec: Any) -> Obj:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"phases": []}}
    return {"spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec}}


# ObjectSet


@pytest.mark.parametrize("obj", [{}, {"spec": {}}, {"spec": None}])
def test_a_set_without_a_spec_is_active_and_empty(obj: Obj) -> None:
    assert read_set(obj) == SetSpec(
        lifecycle_state=LifecycleState.ACTIVE,
        previous=(),
        revision=0,
        phases=(),
        availability_probes=(),
        success_delay_seconds=0,
        collision_protection="",
        progress_deadline_seconds=None,
    )


def test_every_field_of_a_set_is_parsed() -> None:
    mapping = {"sourceType": "Ready", "destinationType": "my.org/Ready"}
    spec = read_set(
        {
            "spec": {
                "lifecycleState": "Paused",
                "previous": [
                    {"name": "v1", "kind": "ObjectSet", "group": "package-operator.run"},
                    {"name": "v2"},
                ],
                "revision": 3,
                "phases": [
                    {
                        "name": "config",
                        "objects": [
                            {
                                "object": MANIFEST,
                                "collisionProtection": "None",
                                "conditionMappings": [mapping],
                            }
                        ],
                    },
                    {"name": "rest", "class": "default", "slices": ["a", "b"]},
                ],
                "availabilityProbes": [PROBE],
                "successDelaySeconds": 60,
                "collisionProtection": "IfNoController",
                "progressDeadlineSeconds": 600,
            }
        }
    )

    assert spec.lifecycle_state is LifecycleState.PAUSED
    assert spec.previous_names == ("v1", "v2")
    assert spec.revision == 3
    assert spec.phases == (
        TemplatePhase(
            name="config",
            objects=(
                SetObject(
                    object=MANIFEST,
                    collision_protection="None",
                    condition_mappings=(
                        ConditionMapping(source_type="Ready", destination_type="my.org/Ready"),
                    ),
                ),
            ),
        ),
        TemplatePhase(name="rest", class_="default", slices=("a", "b")),
    )
    assert spec.availability_probes == (PROBE,)
    assert spec.success_delay_seconds == 60
    assert spec.collision_protection == "IfNoController"
    assert spec.progress_deadline_seconds == 600


def test_a_manifest_stays_as_it_is_stated() -> None:
    spec = read_set({"spec": {"phases": [{"name": "p", "objects": objects(MANIFEST, NULLABLE)}]}})

    assert [one.object for one in spec.phases[0].objects] == [MANIFEST, NULLABLE]


def test_an_unknown_collision_protection_is_not_an_error_of_the_spec() -> None:
    stated = [{"object": MANIFEST, "collisionProtection": "Sometimes"}]

    spec = read_set({"spec": {"phases": [{"name": "p", "objects": stated}]}})

    assert spec.phases[0].objects[0].collision_protection == "Sometimes"


def test_fields_that_are_null_count_as_unset() -> None:
    spec = read_set({"spec": {"phases": None, "previous": None, "progressDeadlineSeconds": None}})

    assert spec == SetSpec()


# ObjectDeployment


def test_a_deployment_keeps_ten_revisions_by_default() -> None:
    spec = read_deployment(deployment())

    assert spec.revision_history_limit == 10
    assert spec.paused is False
    assert spec.progress_deadline_seconds is None


def test_the_template_of_a_deployment_is_parsed_and_kept_as_it_is_stated() -> None:
    template = {
        "metadata": {"labels": {"app": "web"}, "annotations": {"a": "b"}, "finalizers": ["x/y"]},
        "spec": {
            "phases": [{"name": "p", "objects": objects(NULLABLE)}],
            "availabilityProbes": [PROBE],
            "successDelaySeconds": 3,
            "collisionProtection": "None",
        },
    }

    spec = read_deployment(
        deployment(template=template, revisionHistoryLimit=0, paused=True, progressDeadlineSeconds=60)
    )

    assert spec.selector == {"matchLabels": {"app": "web"}}
    assert spec.template.stated is template
    assert spec.template.metadata.labels == {"app": "web"}
    assert spec.template.metadata.annotations == {"a": "b"}
    assert spec.template.spec == TemplateSpec(
        phases=(TemplatePhase(name="p", objects=(SetObject(object=NULLABLE),)),),
        availability_probes=(PROBE,),
        success_delay_seconds=3,
        collision_protection="None",
    )
    assert (spec.revision_history_limit, spec.paused, spec.progress_deadline_seconds) == (0, True, 60)


# ObjectSetPhase and ObjectSlice


def test_a_phase_is_parsed() -> None:
    spec = read_phase(
        {
            "spec": {
                "paused": True,
                "revision": 2,
                "previous": [{"name": "v1"}],
                "availabilityProbes": [PROBE],
                "objects": objects(NULLABLE),
            }
        }
    )

    assert (spec.paused, spec.revision, spec.previous_names) == (True, 2, ("v1",))
    assert spec.availability_probes == (PROBE,)
    assert spec.objects == (SetObject(object=NULLABLE),)


def test_the_objects_of_a_slice_are_at_its_top() -> None:
    assert read_slice({"objects": objects(MANIFEST, NULLABLE)}).objects == (
        SetObject(object=MANIFEST),
        SetObject(object=NULLABLE),
    )
    assert read_slice({}).objects == ()


# What is invalid


@pytest.mark.parametrize(
    ("read", "obj", "field"),
    [
        (read_set, {"spec": {"lifecycleState": "Stopped"}}, "spec.lifecycleState: "),
        (read_set, {"spec": {"previous": [{}]}}, "spec.previous[0]: "),
        (read_set, {"spec": {"phases": [{}]}}, "spec.phases[0]: "),
        (
            read_set,
            {"spec": {"phases": [{"name": "p", "objects": [{"object": "x"}]}]}},
            "spec.phases[0].objects[0].object: ",
        ),
        (read_set, {"spec": {"progressDeadlineSeconds": 0}}, "spec.progressDeadlineSeconds: "),
        (read_deployment, {}, "spec: "),
        (read_deployment, deployment(selector=None), "spec: "),
        (read_deployment, deployment(template={"spec": {}}), "spec.template: "),
        (
            read_deployment,
            deployment(template={"metadata": {}, "spec": {"phases": [{"name": 1}]}}),
            "spec.template.spec.phases[0].name: ",
        ),
        (read_phase, {"spec": {"revision": 1}}, "spec: "),
        (read_phase, {"spec": {"objects": []}}, "spec: "),
        (read_slice, {"objects": [{}]}, "objects[0]: "),
    ],
)
def test_an_invalid_spec_is_an_error_that_names_the_field(
    read: Callable[[Obj], object], obj: Obj, field: str
) -> None:
    with pytest.raises(SpecError) as refused:
        read(obj)

    assert str(refused.value).startswith(field)
