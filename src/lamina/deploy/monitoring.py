"""The objects for Prometheus and Grafana, each where its value asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from lamina.deploy.alerts import groups
from lamina.deploy.dashboard import dashboard
from lamina.deploy.installation import Installation
from lamina.objects.types import Made

_VERSION = "monitoring.coreos.com/v1"


def objects(install: Installation) -> Iterator[Made]:
    """Yield the ServiceMonitor, the PrometheusRule and the ConfigMap with the dashboard."""
    values, job = install.values, f"{install.name}-metrics"
    if values.metrics.service_monitor.enabled:
        yield _service_monitor(install)
    if values.alerts.enabled:
        yield {
            "apiVersion": _VERSION,
            "kind": "PrometheusRule",
            "metadata": install.metadata(labels=values.alerts.labels),
            "spec": {"groups": groups(job)},
        }
    if values.dashboard.enabled:
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": install.metadata(f"{install.name}-dashboard", labels=values.dashboard.labels),
            "data": {"lamina.json": dashboard_text(job)},
        }


def dashboard_text(job: str) -> str:
    """Return the dashboard as it is stored in the ConfigMap and in the chart."""
    return json.dumps(dashboard(job), indent=2) + "\n"


def _service_monitor(install: Installation) -> Made:
    wanted = install.values.metrics.service_monitor
    selected = {**install.selector, "app.kubernetes.io/component": "metrics"}
    return {
        "apiVersion": _VERSION,
        "kind": "ServiceMonitor",
        "metadata": install.metadata(labels=wanted.labels),
        "spec": {
            "selector": {"matchLabels": selected},
            # The label `namespace` of a series is that of an owner, and not that of the pod.
            "endpoints": [{"port": "metrics", "interval": wanted.interval, "honorLabels": True}],
        },
    }
