"""The Deployment of an installation: the arguments of `lamina run`, and a pod with the least privileges."""

from __future__ import annotations

from lamina.deploy.installation import Installation
from lamina.objects.types import Made

USER = 65532
"""The user of the Containerfile."""


def deployment(install: Installation) -> Made:
    """Return the Deployment."""
    values = install.values
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": install.metadata(),
        "spec": {
            "replicas": values.replicas,
            "selector": {"matchLabels": install.selector},
            # No replica is stopped before the next one is ready to take its Lease.
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {
                    "labels": {**install.selector, **values.pod_labels},
                    **({"annotations": values.pod_annotations} if values.pod_annotations else {}),
                },
                "spec": _pod(install),
            },
        },
    }


def arguments(install: Installation) -> list[str]:
    """Return the arguments of the container."""
    values = install.values
    found = [
        "run",
        f"--families={','.join(values.families.names) or 'none'}",
        "--install" if values.install_crds else "--no-install",
        f"--lease-namespace={install.namespace}",
        f"--lease-name={install.name}",
        f"--shards={values.shards}",
        f"--metrics-address=:{values.metrics.port}",
        f"--health-probe-bind-address=:{values.metrics.probe_port}",
        f"--log={values.log_level}",
        f"--log-format={values.log_format}",
    ]
    if not values.upstream_leases:
        found.append("--no-upstream-lease")
    if not values.scheduler:
        found.append("--no-scheduler")
    if values.has_webhook:
        where = (
            f"--webhook-url={values.webhook.url}"
            if values.webhook.url
            else f"--webhook-service={install.namespace}/{install.name}-webhook"
        )
        found += [where, f"--webhook-bind-address=:{values.webhook.port}"]
    return found + values.extra_args


def _pod(install: Installation) -> Made:
    values = install.values
    optional: Made = {
        "imagePullSecrets": values.image_pull_secrets,
        "nodeSelector": values.node_selector,
        "tolerations": values.tolerations,
        "priorityClassName": values.priority_class_name,
    }
    return {
        "serviceAccountName": install.account,
        # Longer than a reconcile takes: a replica finishes what it does, and releases its Leases.
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": install.selector},
            }
        ],
        "containers": [_container(install)],
        # Serving certificates are written to a file before they are loaded.
        "volumes": [{"name": "tmp", "emptyDir": {}}, *values.extra_volumes],
        **{name: value for name, value in optional.items() if value},
    }


def _container(install: Installation) -> Made:
    values = install.values
    ports = [("metrics", values.metrics.port), ("probes", values.metrics.probe_port)]
    if values.has_webhook:
        ports.append(("webhook", values.webhook.port))
    return {
        "name": "lamina",
        "image": values.image,
        "imagePullPolicy": values.image_pull_policy,
        "args": arguments(install),
        **({"env": values.env} if values.env else {}),
        "ports": [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "probes"}, "failureThreshold": 6},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "probes"}},
        "resources": values.resources,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, *values.extra_volume_mounts],
    }
