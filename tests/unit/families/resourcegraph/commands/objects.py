"""Definitions, instances and their revisions, as commands read them."""

from __future__ import annotations

from typing import Any

from lamina.families.resourcegraph.commands.facts import Facts
from lamina.families.resourcegraph.labels import API_VERSION, INPUT_REVISION_LABEL, INSTANCE_NAME, RGD_NAME
from lamina.objects import meta
from lamina.objects.types import Made

GROUP = "apps.example.com"
RGD = {"apiVersion": API_VERSION, "kind": "ResourceGraphDefinition"}


def content(replicas: int = 3, **schema: Any) -> Made:
    stated = {"kind": "Application", "apiVersion": "v1alpha1", "group": GROUP, **schema}
    template = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "${schema.metadata.name}"},
        "spec": {"replicas": replicas},
    }
    return {"schema": stated, "resources": [{"id": "deployment", "template": template}]}


def definition(spec: Made | None = None, **status: Any) -> Made:
    metadata = {"name": "application", "uid": "u-rgd", "generation": 1}
    return {**RGD, "metadata": metadata, "spec": spec or content(), "status": status}


def revision(number: int, spec: Made | None = None, created: str = "", instances: int = 0) -> Made:
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceGraphDefinitionRevision",
        "metadata": {
            "name": f"application-rev-{number}",
            "labels": {RGD_NAME: "application"},
            "ownerReferences": [{**RGD, "name": "application", "uid": "u-rgd", "controller": True}],
        },
        "spec": {"revision": number, **(spec or content())},
        "status": {"createdAt": created, "instanceCount": instances},
    }


def instance(name: str = "my-app", annotations: Made | None = None, **status: Any) -> Made:
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "Application",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"u-{name}",
            "generation": 1,
            "annotations": annotations or {},
        },
        "spec": {"image": "nginx"},
        "status": status,
    }


def input_revision(
    number: int,
    rgd: int,
    created: str = "",
    status: str = "Completed",
    *,
    superseded: bool = False,
    **spec: Any,
) -> Made:
    owner = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Application", "name": "my-app", "uid": "u-my-app"}
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceGraphInputRevision",
        "metadata": {
            "name": f"my-app-input-rev-{number}",
            "namespace": "default",
            "labels": {INSTANCE_NAME: "my-app", INPUT_REVISION_LABEL: str(number)},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"inputRevision": number, "rgdRevision": rgd, "instanceSpec": spec},
        "status": {"createdAt": created, "propagationStatus": status, "superseded": superseded},
    }


def facts(owner: Made, *revisions: Made, instances: tuple[Made, ...] = ()) -> Facts:
    return Facts(ref=meta.ref(owner), owner=owner, revisions=revisions, instances=instances)
