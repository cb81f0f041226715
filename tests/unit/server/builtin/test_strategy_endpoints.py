"""What each endpoint may change, what it owns, and what raises the generation."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from lamina.server.kinds.builtin.catalogue import CATALOGUE
from lamina.server.kinds.builtin.codec import BuiltinCodec
from lamina.server.kinds.builtin.csr import sign_request
from lamina.server.kinds.builtin.pods import mount_account_token
from lamina.server.kinds.builtin.strategy import STRATEGIES, reset_fields, strategy_of
from lamina.server.kinds.builtin.structs import fields, key_of
from lamina.server.kinds.kind import Findings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STAMP = "2026-01-01T00:00:00Z"


def writing(plural: str, version: str = "") -> BuiltinCodec:
    resource = next(one for one in CATALOGUE if one.plural == plural and version in ("", one.version))
    return BuiltinCodec(resource, lambda: NOW)


def made(plural: str, **body: Any) -> dict[str, Any]:
    """Return a new object as it would be stored."""
    kind = writing(plural)
    obj = kind.decode({"metadata": {"name": "a", "uid": "u"}, **copy.deepcopy(body)}, Findings())
    kind.default(obj)
    kind.prepare_create(obj)
    return obj


def changed(plural: str, old: dict[str, Any], subresource: str = "", **parts: Any) -> dict[str, Any]:
    """Return an object with some parts replaced, as it would be stored after a write to an endpoint."""
    kind, kept = writing(plural), copy.deepcopy(old)
    new = kind.decode(copy.deepcopy({**old, **parts}), Findings())
    kind.default(new)
    kind.prepare_update(new, old, subresource)
    assert old == kept
    return new


TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}


def test_every_row_is_about_a_kind_that_is_served() -> None:
    assert set(STRATEGIES) <= {key_of(resource.definition) for resource in CATALOGUE}


def test_every_kind_with_a_status_endpoint_has_a_row_for_it() -> None:
    for resource in CATALOGUE:
        if any(sub.name == "status" for sub in resource.subresources):
            assert "status" in strategy_of(key_of(resource.definition)).endpoints, resource.kind


def test_paths_that_are_not_owned_exist() -> None:
    for key, strategy in STRATEGIES.items():
        for endpoint in ("", *strategy.endpoints):
            for path in reset_fields(strategy, endpoint):
                names = {field.name: field.type for field in fields(key)}
                assert path[0] in names, (key, path)
                if len(path) > 1:
                    assert path[1] in {field.name for field in fields(names[path[0]])}, (key, path)


@pytest.mark.parametrize(
    ("plural", "endpoint", "paths"),
    [
        ("configmaps", "", ()),
        ("deployments", "", (("status",),)),
        ("deployments", "status", (("spec",), ("metadata", "labels"))),
        ("replicasets", "status", (("spec",),)),
        ("deployments", "scale", (("status",),)),
        ("pods", "status", (("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences"))),
        ("namespaces", "finalize", (("status",),)),
        ("certificatesigningrequests", "", (("spec",), ("status",))),
        ("certificatesigningrequests", "approval", (("spec",), ("status", "certificate"))),
        ("flowschemas", "status", (("spec",), ("metadata",))),
    ],
)
def test_an_endpoint_never_owns_what_it_resets(plural: str, endpoint: str, paths: Any) -> None:
    assert tuple(writing(plural).reset_fields(endpoint)) == paths


@pytest.mark.parametrize(
    ("plural", "body", "generation"),
    [
        ("configmaps", {}, None),
        ("services", {"spec": {"ports": [{"port": 1}]}}, None),
        ("deployments", {"spec": WORKLOAD}, 1),
        ("pods", {"spec": TEMPLATE["spec"]}, 1),
        ("priorityclasses", {"value": 1}, 1),
        ("csidrivers", {"spec": {}}, None),
        ("endpointslices", {"addressType": "IPv4"}, 1),
        ("leases", {}, None),
        ("roles", {}, None),
    ],
)
def test_kinds_that_count_their_changes_start_at_one(plural: str, body: Any, generation: int | None) -> None:
    assert made(plural, **body)["metadata"].get("generation") == generation


@pytest.mark.parametrize(
    ("plural", "body", "subresource", "change", "generation"),
    [
        ("deployments", {"spec": WORKLOAD}, "", {"spec": {**WORKLOAD, "replicas": 2}}, 2),
        ("deployments", {"spec": WORKLOAD}, "scale", {"spec": {**WORKLOAD, "replicas": 2}}, 2),
        ("deployments", {"spec": WORKLOAD}, "status", {"spec": {**WORKLOAD, "replicas": 2}}, 1),
        ("deployments", {"spec": WORKLOAD}, "", {"metadata": {"name": "a", "labels": {"x": "y"}}}, 1),
        ("deployments", {"spec": WORKLOAD}, "", {"metadata": {"name": "a", "annotations": {"x": "y"}}}, 2),
        ("replicasets", {"spec": WORKLOAD}, "", {"metadata": {"name": "a", "annotations": {"x": "y"}}}, 1),
        ("deployments", {"spec": WORKLOAD}, "", {"metadata": {"name": "a", "generation": 7}}, 1),
        ("deployments", {"spec": WORKLOAD}, "", {"status": {"replicas": 5}}, 1),
        ("ingressclasses", {"spec": {"controller": "a/b"}}, "", {"spec": {"controller": "a/c"}}, 2),
        ("priorityclasses", {"value": 1}, "", {"description": "d"}, 1),
        ("csidrivers", {"spec": {}}, "", {"spec": {"podInfoOnMount": True}}, 1),
        ("endpointslices", {"addressType": "IPv4"}, "", {"metadata": {"name": "a", "labels": {"x": "y"}}}, 2),
        ("podtemplates", {"template": TEMPLATE}, "", {"metadata": {"name": "a", "labels": {"x": "y"}}}, 1),
    ],
)
def test_the_generation_counts_what_is_asked_for(
    plural: str, body: Any, subresource: str, change: Any, generation: int
) -> None:
    old = made(plural, **body)

    assert changed(plural, old, subresource, **change)["metadata"].get("generation") == generation


def test_the_main_endpoint_puts_status_back_and_the_status_endpoint_the_rest() -> None:
    old = made("deployments", spec=WORKLOAD, status={"replicas": 9})
    assert old["status"] == {}

    told = changed("deployments", old, "status", spec={**WORKLOAD, "replicas": 7}, status={"replicas": 3})
    assert told["status"] == {"replicas": 3}
    assert told["spec"] == old["spec"]

    scaled = changed("deployments", told, spec={**WORKLOAD, "replicas": 7}, status={})
    assert scaled["status"] == {"replicas": 3}
    assert scaled["spec"]["replicas"] == 7


def test_the_status_endpoint_lets_metadata_through_unless_the_kind_says_otherwise() -> None:
    labelled = {"name": "a", "labels": {"x": "y"}, "annotations": {"x": "y"}}

    deployment = changed("deployments", made("deployments", spec=WORKLOAD), "status", metadata=labelled)
    assert "labels" not in deployment["metadata"]
    assert deployment["metadata"]["annotations"] == {"x": "y"}

    replica_set = changed("replicasets", made("replicasets", spec=WORKLOAD), "status", metadata=labelled)
    assert replica_set["metadata"]["labels"] == {"x": "y"}

    level = {"type": "Exempt", "exempt": {}}
    shut = made("prioritylevelconfigurations", spec=level)
    assert (
        "labels" not in changed("prioritylevelconfigurations", shut, "status", metadata=labelled)["metadata"]
    )


def test_a_daemon_set_counts_the_changes_of_its_template_in_an_annotation() -> None:
    name = "deprecated.daemonset.template.generation"
    old = made("daemonsets", spec=WORKLOAD)
    assert old["metadata"]["annotations"] == {name: "1"}

    same = changed("daemonsets", old, metadata={"name": "a"})
    assert same["metadata"]["annotations"] == {name: "1"}

    moved = {**WORKLOAD, "template": {**TEMPLATE, "spec": {"containers": [{"name": "c", "image": "j"}]}}}
    again = changed("daemonsets", old, spec=moved)
    assert again["metadata"]["annotations"] == {name: "2"}
    assert again["metadata"]["generation"] == 2


def test_a_job_selects_its_pods_by_its_own_uid() -> None:
    job = made("jobs", spec={"template": TEMPLATE})

    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert job["spec"]["template"]["metadata"]["labels"] == {
        "a": "b",
        "job-name": "a",
        "batch.kubernetes.io/job-name": "a",
        "controller-uid": "u",
        "batch.kubernetes.io/controller-uid": "u",
    }
    assert job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"]
    assert job["metadata"]["labels"] is not job["spec"]["template"]["metadata"]["labels"]


def test_a_job_with_labels_of_its_own_keeps_them() -> None:
    job = made(
        "jobs", metadata={"name": "a", "uid": "u", "labels": {"own": "one"}}, spec={"template": TEMPLATE}
    )

    assert job["metadata"]["labels"] == {"own": "one"}


def test_a_namespace_is_active_and_has_its_name_and_finalizer() -> None:
    namespace = made("namespaces", status={"phase": "Terminating"})

    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "a"}
    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert namespace["status"] == {"phase": "Active"}
    assert changed("namespaces", namespace, spec={})["spec"] == {"finalizers": ["kubernetes"]}
    assert changed("namespaces", namespace, "finalize", spec={})["spec"] == {}


def test_a_pod_is_pending_and_has_a_class_an_account_a_priority_and_two_tolerations() -> None:
    pod = made("pods", spec=TEMPLATE["spec"])

    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["spec"]["serviceAccountName"] == pod["spec"]["serviceAccount"] == "default"
    assert pod["spec"]["priority"] == 0
    assert pod["spec"]["preemptionPolicy"] == "PreemptLowerPriority"
    assert [toleration["key"] for toleration in pod["spec"]["tolerations"]] == [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ]


def test_a_pod_that_tolerates_everything_gets_no_further_tolerations() -> None:
    pod = made("pods", spec={**TEMPLATE["spec"], "tolerations": [{"operator": "Exists"}]})

    assert pod["spec"]["tolerations"] == [{"operator": "Exists"}]


def test_a_pods_own_labels_become_part_of_selectors_that_name_them() -> None:
    constraint = {
        "maxSkew": 1,
        "topologyKey": "z",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {},
        "matchLabelKeys": ["a", "absent"],
    }

    pod = made(
        "pods",
        metadata={"name": "a", "labels": {"a": "b"}},
        spec={**TEMPLATE["spec"], "topologySpreadConstraints": [constraint]},
    )

    assert pod["spec"]["topologySpreadConstraints"][0]["labelSelector"] == {
        "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]
    }


def test_only_ephemeral_containers_come_through_their_endpoint() -> None:
    old = made("pods", spec=TEMPLATE["spec"])
    debug = {"name": "debug", "image": "i"}
    spec = {**old["spec"], "nodeName": "elsewhere", "ephemeralContainers": [debug]}

    new = changed("pods", old, "ephemeralcontainers", spec=spec, metadata={"name": "a", "labels": {"x": "y"}})

    assert "nodeName" not in new["spec"]
    assert [one["name"] for one in new["spec"]["ephemeralContainers"]] == ["debug"]
    assert "labels" not in new["metadata"]
    assert new["metadata"]["generation"] == 2


def test_only_resources_come_through_the_resize_endpoint() -> None:
    old = made("pods", spec=TEMPLATE["spec"])
    container = {**old["spec"]["containers"][0], "image": "other", "resources": {"requests": {"cpu": "1"}}}

    new = changed("pods", old, "resize", spec={**old["spec"], "containers": [container]})

    assert new["spec"]["containers"][0]["image"] == "i"
    assert new["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1"}}
    assert new["metadata"]["generation"] == 2


def test_the_class_and_generations_of_a_pods_status_outlive_a_writer_who_leaves_them_out() -> None:
    old = made("pods", spec=TEMPLATE["spec"])
    ready = {"type": "Ready", "status": "True", "observedGeneration": 1}
    old = changed("pods", old, "status", status={**old["status"], "conditions": [ready]})

    new = changed(
        "pods",
        old,
        "status",
        status={"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]},
    )

    assert new["status"]["qosClass"] == "BestEffort"
    assert new["status"]["conditions"][0]["observedGeneration"] == 1


def test_the_token_of_its_account_is_mounted_into_every_container_once() -> None:
    pod = made("pods", spec=TEMPLATE["spec"])

    mount_account_token(pod, "abcde")
    mount_account_token(pod, "fghij")

    assert [volume["name"] for volume in pod["spec"]["volumes"]] == ["kube-api-access-abcde"]
    assert [mount["name"] for mount in pod["spec"]["containers"][0]["volumeMounts"]] == [
        "kube-api-access-abcde"
    ]

    silent = made("pods", spec={**TEMPLATE["spec"], "automountServiceAccountToken": False})
    mount_account_token(silent, "abcde")
    assert "volumes" not in silent["spec"]


def test_a_volume_remembers_when_its_phase_changed() -> None:
    old = made("persistentvolumes", spec={"capacity": {"storage": "1Gi"}})
    assert old["status"] == {"phase": "Pending", "lastPhaseTransitionTime": STAMP}
    assert old["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    old["status"]["lastPhaseTransitionTime"] = "2025-01-01T00:00:00Z"

    same = changed("persistentvolumes", old, "status", status={"phase": "Pending"})
    assert same["status"]["lastPhaseTransitionTime"] == "2025-01-01T00:00:00Z"

    bound = changed("persistentvolumes", old, "status", status={"phase": "Bound"})
    assert bound["status"]["lastPhaseTransitionTime"] == STAMP


def test_a_certificate_request_says_who_asks_and_is_approved_only_where_approval_is_given() -> None:
    old = made(
        "certificatesigningrequests",
        spec={"request": "YQ==", "signerName": "a.b/c", "username": "liar", "groups": ["g"]},
        status={"certificate": "YQ=="},
    )
    assert "username" not in old["spec"]
    assert old["status"] == {}
    sign_request(old, "alice", "", ["dev"], {})
    assert (old["spec"]["username"], old["spec"]["groups"]) == ("alice", ["dev"])

    approved = {"type": "Approved", "status": "True", "reason": "R"}
    new = changed(
        "certificatesigningrequests",
        old,
        "approval",
        status={"conditions": [approved], "certificate": "eA=="},
    )
    assert new["status"] == {
        "conditions": [{**approved, "lastUpdateTime": STAMP, "lastTransitionTime": STAMP}]
    }

    issued = changed(
        "certificatesigningrequests",
        new,
        "status",
        status={"certificate": "eA==", "conditions": [{**approved, "reason": "Changed"}]},
    )
    assert issued["status"]["certificate"] == "eA=="
    assert issued["status"]["conditions"] == new["status"]["conditions"]


def test_version_one_of_an_autoscaler_cannot_lose_metrics_through_its_status() -> None:
    v1 = writing("horizontalpodautoscalers", "v1")
    metrics = '[{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]'
    name = "autoscaling.alpha.kubernetes.io/metrics"
    target = {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3}
    old = v1.decode({"metadata": {"name": "a", "annotations": {name: metrics}}, "spec": target}, Findings())
    v1.default(old)
    v1.prepare_create(old)
    assert old["metadata"]["annotations"] == {name: metrics}

    new = v1.decode({"metadata": {"name": "a"}, "spec": {}, "status": {"desiredReplicas": 2}}, Findings())
    v1.default(new)
    v1.prepare_update(new, old, "status")

    assert new["metadata"]["annotations"] == {name: metrics}
    assert new["status"]["desiredReplicas"] == 2
