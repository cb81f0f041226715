"""What leads to services, and what scales them."""

from __future__ import annotations

from collections.abc import Iterator

from tests.unit.server.builtin.golden.parts import Case, case


def networking() -> Iterator[Case]:
    yield case(
        "networking", "ingresses", "Ingress", "ingress",
        {"spec": {"rules": [{"host": "example.com", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}],
            "tls": [{"hosts": []}]}},
        ("", {"spec": {"ingressClassName": "x", "defaultBackend": {"service": {
            "name": "s", "port": {"name": "http"}}}}}),
        ("status", {"spec": {}, "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}),
    )  # fmt: skip
    yield case(
        "networking", "ingressclasses", "IngressClass", "golden-class",
        {"spec": {"controller": "example.com/c", "parameters": {"kind": "K", "name": "n", "apiGroup": "g.io"}}},
    )  # fmt: skip
    yield case(
        "networking", "networkpolicies", "NetworkPolicy", "networkpolicy",
        {"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}, {"port": "http", "protocol": "UDP"}]}]}},
        ("", {"spec": {"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]}}),
    )  # fmt: skip
    yield case(
        "networking", "networkpolicies", "NetworkPolicy", "networkpolicy-all", {"spec": {"egress": [{}]}}
    )
    yield case(
        "discovery", "endpointslices", "EndpointSlice", "endpointslice",
        {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.1.1"], "conditions": {"ready": False}}],
         "ports": [{"port": 80}, {"name": "b"}]},
        ("", {"addressType": "IPv4", "endpoints": [], "metadata": {"labels": {"a": "b"}}}),
        ("", {"addressType": "IPv4", "endpoints": [], "metadata": {"labels": {"a": "b"},
                                                                   "annotations": {"x": "y"}}}),
    )  # fmt: skip


def autoscaling() -> Iterator[Case]:
    target = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}
    yield case(
        "autoscaling2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa-plain",
        {"spec": {"scaleTargetRef": target, "maxReplicas": 3}},
    )  # fmt: skip
    yield case(
        "autoscaling2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa-behaviour",
        {"metadata": {"annotations": {"autoscaling.alpha.kubernetes.io/metrics": "[]", "own": "one"}},
         "spec": {"scaleTargetRef": target, "maxReplicas": 3, "minReplicas": 2,
                  "behavior": {"scaleDown": {"stabilizationWindowSeconds": 60, "tolerance": "0.05"}},
                  "metrics": [{"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {
                      "type": "AverageValue", "averageValue": "1000m"}}}]}},
    )  # fmt: skip
    yield case(
        "autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa-old",
        {"spec": {"scaleTargetRef": target, "maxReplicas": 3}},
    )  # fmt: skip
    metrics = (
        '[{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"m<1","targetValue":"5"}},'
        '{"type":"External","external":{"metricName":"e","targetAverageValue":"2000m"}},'
        '{"type":"ContainerResource","containerResource":{"name":"memory","targetAverageUtilization":60,'
        '"container":"c"}},'
        '{"type":"Resource","resource":{"name":"memory","targetAverageValue":"1Gi"}}]'
    )
    behavior = (
        '{"ScaleUp":{"StabilizationWindowSeconds":5,"SelectPolicy":"Min","Policies":'
        '[{"Type":"Pods","Value":1,"PeriodSeconds":15}]}}'
    )
    yield case(
        "autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa-annotated",
        {"metadata": {"annotations": {
            "autoscaling.alpha.kubernetes.io/metrics": metrics,
            "autoscaling.alpha.kubernetes.io/behavior": behavior,
            "own": "one"}},
         "spec": {"scaleTargetRef": target, "maxReplicas": 3, "minReplicas": 2,
                  "targetCPUUtilizationPercentage": 70}},
    )  # fmt: skip
