"""Field labels of built-in kinds: which are selectable, their values, and the error for others."""

from typing import Any

import pytest

from lamina.server.kinds.builtin.field_labels import field_labels_of, refusal


@pytest.mark.parametrize(
    ("group", "plural", "label", "obj", "value"),
    [
        ("", "pods", "spec.nodeName", {"spec": {"nodeName": "east"}}, "east"),
        ("", "pods", "spec.host", {"spec": {"nodeName": "east"}}, "east"),
        ("", "pods", "spec.hostNetwork", {"spec": {}}, "false"),
        ("", "pods", "status.podIP", {"status": {"podIPs": [{"ip": "10.1.2.3"}]}}, "10.1.2.3"),
        ("", "pods", "status.phase", {}, ""),
        ("", "nodes", "spec.unschedulable", {"spec": {"unschedulable": True}}, "true"),
        ("", "secrets", "type", {"type": "Opaque"}, "Opaque"),
        ("", "namespaces", "status.phase", {"status": {"phase": "Active"}}, "Active"),
        ("", "replicationcontrollers", "status.replicas", {"status": {}}, "0"),
        ("", "events", "involvedObject.name", {"involvedObject": {"name": "p"}}, "p"),
        ("", "events", "source", {"reportingComponent": "kubelet"}, "kubelet"),
        ("", "services", "spec.clusterIP", {"spec": {"clusterIP": "None"}}, "None"),
        ("batch", "jobs", "status.successful", {"status": {"succeeded": 2}}, "2"),
        ("events.k8s.io", "events", "regarding.kind", {"regarding": {"kind": "Pod"}}, "Pod"),
        (
            "certificates.k8s.io",
            "certificatesigningrequests",
            "spec.signerName",
            {"spec": {"signerName": "a/b"}},
            "a/b",
        ),
    ],
)
def test_a_label_reads_its_field(
    group: str, plural: str, label: str, obj: dict[str, Any], value: str
) -> None:
    assert field_labels_of(group, plural)[label](obj) == value


@pytest.mark.parametrize(
    ("group", "plural", "label", "told"),
    [
        ("", "configmaps", "metadata.name", ""),
        ("", "configmaps", "metadata.namespace", ""),
        ("", "pods", "status.phase", ""),
        (
            "",
            "configmaps",
            "data.x",
            '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        ("", "pods", "spec.foo", "field label not supported: spec.foo"),
        ("", "nodes", "metadata.namespace", "field label not supported: metadata.namespace"),
        ("batch", "jobs", "x", 'field label "x" not supported for Job'),
        (
            "apps",
            "replicasets",
            "status.replicas",
            '"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
def test_a_label_that_cannot_be_asked_for_is_refused_in_the_servers_words(
    group: str, plural: str, label: str, told: str
) -> None:
    assert refusal(group, plural, label) == told
