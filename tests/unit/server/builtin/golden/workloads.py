"""Workloads, jobs and pods."""

from __future__ import annotations

from collections.abc import Iterator

from tests.unit.server.builtin.golden.parts import PLAIN, RICH, SELECTOR, Case, case, template


def workloads() -> Iterator[Case]:
    simple = {"selector": SELECTOR, "template": template()}
    rich = {
        "selector": SELECTOR,
        "template": template(RICH, annotations={"pod.beta.kubernetes.io/init-containers": "[]"}),
    }
    yield case(
        "apps", "deployments", "Deployment", "deployment-plain", {"spec": {**simple, "paused": True}},
        ("", {"spec": {**simple, "paused": True, "replicas": 0}}),
        ("", {"metadata": {"annotations": {"a": "b"}}, "spec": {**simple, "paused": True, "replicas": 0}}),
        ("status", {"metadata": {"labels": {"x": "y"}, "annotations": {"c": "d"}}, "spec": {"replicas": 9},
                    "status": {"replicas": 4, "conditions": [{"type": "T", "status": "True"}]}}),
    )  # fmt: skip
    yield case(
        "apps", "deployments", "Deployment", "deployment-rich",
        {"spec": {**rich, "replicas": 0, "paused": True, "strategy": {"type": "Recreate"}, "minReadySeconds": 0},
         "status": {"replicas": 3}},
    )  # fmt: skip
    yield case(
        "apps", "deployments", "Deployment", "deployment-paced",
        {"spec": {**simple, "paused": True, "strategy": {"rollingUpdate": {"maxSurge": 1}}}},
    )  # fmt: skip
    yield case("apps", "replicasets", "ReplicaSet", "replicaset", {"spec": {**rich, "replicas": 0}})
    yield case(
        "apps", "statefulsets", "StatefulSet", "statefulset-plain",
        {"spec": {**simple, "replicas": 0, "serviceName": "s",
                  "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": {
                      "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1000Mi"}}}}]}},
    )  # fmt: skip
    yield case(
        "apps", "statefulsets", "StatefulSet", "statefulset-ondelete",
        {"spec": {**simple, "replicas": 0, "updateStrategy": {"type": "OnDelete"}, "ordinals": {"start": 0},
                  "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}},
    )  # fmt: skip
    yield case(
        "apps", "statefulsets", "StatefulSet", "statefulset-rolling",
        {"spec": {**simple, "replicas": 0,
                  "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}}},
    )  # fmt: skip
    nowhere = {"selector": SELECTOR, "template": template({**PLAIN, "nodeSelector": {"no": "where"}})}
    moved = {"selector": SELECTOR, "template": template({**PLAIN, "nodeSelector": {"else": "where"}})}
    yield case(
        "apps", "daemonsets", "DaemonSet", "daemonset", {"spec": nowhere},
        ("", {"metadata": {"annotations": {"a": "b"}}, "spec": nowhere}),
        ("", {"spec": moved}),
        ("", {"spec": {**moved, "minReadySeconds": 3}}),
        ("status", {"spec": moved, "status": {"numberReady": 1}}),
    )  # fmt: skip
    yield case(
        "apps", "controllerrevisions", "ControllerRevision", "controllerrevision",
        {"data": {"spec": {"x": None, "y": []}}, "revision": 0},
    )  # fmt: skip
    job = {"restartPolicy": "Never", **PLAIN}
    yield case("batch", "jobs", "Job", "job-plain", {"spec": {"suspend": True, "template": {"spec": job}}})
    yield case(
        "batch", "jobs", "Job", "job-labelled",
        {"spec": {"suspend": True, "parallelism": 2, "template": template(job)}},
        ("status", {"spec": {"template": {"spec": {"containers": []}}}, "status": {"failed": 0}}),
    )  # fmt: skip
    yield case(
        "batch", "jobs", "Job", "job-indexed",
        {"metadata": {"labels": {"own": "label"}},
         "spec": {"suspend": True, "completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1,
                  "template": {"spec": job}, "podFailurePolicy": {"rules": [
                      {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}}},
    )  # fmt: skip
    yield case(
        "batch", "jobs", "Job", "job-manual",
        {"spec": {"suspend": True, "manualSelector": True, "selector": {"matchLabels": {"own": "job"}},
                  "template": {"metadata": {"labels": {"own": "job"}}, "spec": job}}},
    )  # fmt: skip
    yield case(
        "batch", "cronjobs", "CronJob", "cronjob",
        {"spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": job}}}}},
        ("", {"spec": {"schedule": "0 0 1 2 *", "jobTemplate": {"spec": {"template": {"spec": job}}},
                       "startingDeadlineSeconds": 0}}),
    )  # fmt: skip
    yield case(
        "v1", "replicationcontrollers", "ReplicationController", "replicationcontroller",
        {"spec": {"replicas": 0, "template": template()}},
    )  # fmt: skip
    yield case("v1", "podtemplates", "PodTemplate", "podtemplate", {"template": template(RICH)})


def pods() -> Iterator[Case]:
    quiet = {"automountServiceAccountToken": False}
    yield case("v1", "pods", "Pod", "pod-plain", {"spec": {**PLAIN, **quiet}})
    yield case(
        "v1", "pods", "Pod", "pod-rich",
        {"metadata": {"labels": {"app": "web", "tier": "front"}, "annotations": {
            "container.apparmor.security.beta.kubernetes.io/d": "runtime/default"}},
         "spec": {**{name: part for name, part in RICH.items() if name != "serviceAccount"}, **quiet,
                  "hostNetwork": False}},
    )  # fmt: skip
    yield case(
        "v1", "pods", "Pod", "pod-hostnetwork",
        {"spec": {**quiet, "hostNetwork": True, "terminationGracePeriodSeconds": -5, "containers": [
            {"name": "c", "image": "localhost:5000/app", "ports": [{"containerPort": 80}]}]}},
    )  # fmt: skip
    yield case(
        "v1", "pods", "Pod", "pod-guaranteed",
        {"spec": {**quiet, "priorityClassName": "system-node-critical", "containers": [
            {"name": "c", "image": "a:b", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}]}},
    )  # fmt: skip
    yield case(
        "v1", "pods", "Pod", "pod-whole",
        {"spec": {**quiet, "resources": {"limits": {"cpu": "2", "memory": "2Gi"}}, "containers": [
            {"name": "a", "image": "a:b", "resources": {"requests": {"cpu": "100m"}}},
            {"name": "b", "image": "a:b", "resources": {"requests": {"cpu": "250m"}}}]}},
    )  # fmt: skip
    yield case(
        "v1", "pods", "Pod", "pod-gated", {"spec": {**quiet, **PLAIN, "schedulingGates": [{"name": "g/x"}]}}
    )
    yield case(
        "v1", "pods", "Pod", "pod-told", {"spec": {**quiet, **PLAIN}},
        ("status", {"metadata": {"labels": {"through": "status"}}, "spec": {"containers": []},
                    "status": {"phase": "Running", "podIP": "10.1.2.3", "hostIP": "10.0.0.9",
                               "startTime": "2026-01-01T02:00:00.5+02:00",
                               "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}],
                               "containerStatuses": [{"name": "c", "image": "i", "imageID": "", "ready": False,
                                                      "restartCount": 0, "state": {"waiting": {}}}]}}),
        ("status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}}),
    )  # fmt: skip
