"""Discovery documents, in Kubernetes' order and format."""

from __future__ import annotations

from typing import Any

import orjson

from lamina.server.kinds.kind import Kind
from lamina.server.openapi.discovery import (
    api_group,
    api_group_discovery_list,
    api_group_list,
    api_resource_list,
    api_versions,
    render,
)
from tests.unit.server.served import crd, custom, every_built_in

OBJECT = {"type": "object"}


def widgets() -> list[Kind]:
    widget = crd("ex.example.com", "Widget", {"v1": OBJECT, "v2beta1": OBJECT})
    widget["spec"]["names"] |= {"shortNames": ["wd"], "categories": ["all"]}
    for version in widget["spec"]["versions"]:
        version["subresources"] = {"status": {}, "scale": {}}
    return custom(widget)


def sent(document: Any) -> Any:
    return orjson.loads(render(document).body)


def test_the_core_has_one_version() -> None:
    assert api_versions("127.0.0.1:6443") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    }


def test_groups_stand_in_kubernetes_order_and_custom_ones_follow_by_name() -> None:
    others = custom(crd("a.example.com", "Other", {"v1": OBJECT}))
    groups = [group["name"] for group in api_group_list([*widgets(), *others, *every_built_in()])["groups"]]

    assert groups[:3] == ["apiregistration.k8s.io", "apps", "events.k8s.io"]
    assert groups[-3:] == ["flowcontrol.apiserver.k8s.io", "a.example.com", "ex.example.com"]


def test_the_most_mature_version_is_preferred() -> None:
    assert api_group(widgets(), "ex.example.com") == {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": "ex.example.com",
        "versions": [
            {"groupVersion": "ex.example.com/v1", "version": "v1"},
            {"groupVersion": "ex.example.com/v2beta1", "version": "v2beta1"},
        ],
        "preferredVersion": {"groupVersion": "ex.example.com/v1", "version": "v1"},
    }


def test_what_is_not_served_is_not_there() -> None:
    assert api_group(every_built_in(), "ex.example.com") is None
    assert api_resource_list(every_built_in(), "apps", "v2") is None
    assert api_resource_list([], "", "v1") is None


def test_a_kind_is_followed_by_its_subresources() -> None:
    listed = sent(api_resource_list(widgets(), "ex.example.com", "v1"))

    assert listed == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "ex.example.com/v1",
        "resources": [
            {
                "name": "widgets",
                "singularName": "widget",
                "namespaced": True,
                "kind": "Widget",
                "verbs": ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"],
                "shortNames": ["wd"],
                "categories": ["all"],
            },
            {
                "name": "widgets/status",
                "singularName": "",
                "namespaced": True,
                "kind": "Widget",
                "verbs": ["get", "patch", "update"],
            },
            {
                "name": "widgets/scale",
                "singularName": "",
                "namespaced": True,
                "group": "autoscaling",
                "version": "v1",
                "kind": "Scale",
                "verbs": ["get", "patch", "update"],
            },
        ],
    }


def test_the_core_list_has_no_api_version_as_ever() -> None:
    listed = sent(api_resource_list(every_built_in(), "", "v1"))

    assert "apiVersion" not in listed
    assert [entry["name"] for entry in listed["resources"]][:3] == ["bindings", "configmaps", "endpoints"]
    (eviction,) = (entry for entry in listed["resources"] if entry["name"] == "pods/eviction")
    assert (eviction["group"], eviction["version"], eviction["verbs"]) == ("policy", "v1", ["create"])


def test_aggregated_discovery_is_one_document_for_the_core_and_one_for_the_groups() -> None:
    kinds = [*every_built_in(), *widgets()]
    core = sent(api_group_discovery_list(kinds, core=True))
    groups = sent(api_group_discovery_list(kinds, core=False))

    assert [item["metadata"] for item in core["items"]] == [{}]
    assert {} not in [item["metadata"] for item in groups["items"]]
    assert (groups["kind"], groups["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    assert [version["version"] for version in groups["items"][-1]["versions"]] == ["v1", "v2beta1"]
    assert {version["freshness"] for item in groups["items"] for version in item["versions"]} == {"Current"}


def test_aggregated_discovery_names_the_kind_in_full_for_custom_resources_only() -> None:
    kinds = [*every_built_in(), *widgets()]
    (core,) = api_group_discovery_list(kinds, core=True)["items"]
    pods = next(entry for entry in core["versions"][0]["resources"] if entry["resource"] == "pods")
    widget = api_group_discovery_list(kinds, core=False)["items"][-1]["versions"][0]["resources"][0]

    assert pods["responseKind"] == {"group": "", "version": "", "kind": "Pod"}
    assert pods["subresources"][2]["responseKind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert widget["responseKind"] == {"group": "ex.example.com", "version": "v1", "kind": "Widget"}
    assert widget["scope"] == "Namespaced"
    assert [sub["responseKind"] for sub in widget["subresources"]] == [
        {"group": "ex.example.com", "version": "v1", "kind": "Widget"},
        {"group": "autoscaling", "version": "v1", "kind": "Scale"},
    ]


def test_the_mark_of_a_document_changes_with_it_and_only_then() -> None:
    before = render(api_group_discovery_list(every_built_in(), core=False))
    again = render(api_group_discovery_list(every_built_in(), core=False))
    after = render(api_group_discovery_list([*every_built_in(), *widgets()], core=False))

    assert before == again
    assert before.etag != after.etag
    assert before.etag[0] == before.etag[-1] == '"'
