"""The Grafana dashboard of the chart: owners and their rollouts above, the controllers below."""

from __future__ import annotations

from lamina.objects.types import Made

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 2


def dashboard(job: str) -> Made:
    """Return the dashboard; `job` is the value of the label `job` of the scraped series."""
    here = f'job="{job}"'
    owners = f'lamina_owner_state{{{here},namespace=~"$namespace"}}'
    panels = [
        _table("Owners that are not healthy", f'max by (kind, namespace, name, state) ({owners.replace("}", ",state!~" + chr(34) + "Healthy|Archived" + chr(34) + "}")}) == 1'),
        _graph("Owners by state", f"sum by (state) (max by (kind, namespace, name, state) ({owners}))", "{{state}}"),
        _graph("Targets by state", f"sum by (state) (lamina_rollout_targets{{{here}}})", "{{state}}"),
        _graph("Objects written per second", f"sum by (controller, operation) (rate(lamina_objects_written_total{{{here}}}[$__rate_interval]))", "{{controller}} {{operation}}"),
        _graph("Warnings per second", f'sum by (controller, reason) (rate(lamina_events_total{{{here},type="Warning"}}[$__rate_interval]))', "{{controller}} {{reason}}"),
        _graph("Leases held", f"max by (name, pod) (leader_election_master_status{{{here}}})", "{{name}} {{pod}}"),
        _graph("Reconciles per second", f"sum by (controller, result) (rate(controller_runtime_reconcile_total{{{here}}}[$__rate_interval]))", "{{controller}} {{result}}"),
        _graph("Duration of reconciles, 95th percentile", f"histogram_quantile(0.95, sum by (controller, le) (rate(controller_runtime_reconcile_time_seconds_bucket{{{here}}}[$__rate_interval])))", "{{controller}}", "s"),
        _graph("Keys in the queue", f"max by (name) (workqueue_depth{{{here}}})", "{{name}}"),
        _graph("Hook calls per second", f"sum by (controller_name, code) (rate(metacontroller_sync_requests_total{{{here}}}[$__rate_interval]))", "{{controller_name}} {{code}}"),
        _graph("Requests to API servers per second", f"sum by (host, code) (rate(rest_client_requests_total{{{here}}}[$__rate_interval]))", "{{host}} {{code}}"),
        _graph("Memory", f"process_resident_memory_bytes{{{here}}}", "{{pod}}", "bytes"),
    ]  # fmt: skip
    return {
        "uid": "lamina",
        "title": "Lamina",
        "tags": ["lamina"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [_datasource(), _namespaces(here)]},
        "panels": [
            {**panel, "id": place + 1, "gridPos": _position(place)} for place, panel in enumerate(panels)
        ],
    }


def _position(place: int) -> Made:
    row, column = divmod(place, _COLUMNS)
    return {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": row * _HEIGHT}


def _graph(title: str, expression: str, legend: str, unit: str = "short") -> Made:
    return {
        "type": "timeseries",
        "title": title,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {"unit": unit}, "overrides": []},
        "targets": [{"refId": "A", "datasource": _SOURCE, "expr": expression, "legendFormat": legend}],
    }


def _table(title: str, expression: str) -> Made:
    shown = {"Time": True, "Value": True}
    return {
        "type": "table",
        "title": title,
        "datasource": _SOURCE,
        "fieldConfig": {"defaults": {}, "overrides": []},
        "targets": [
            {"refId": "A", "datasource": _SOURCE, "expr": expression, "format": "table", "instant": True}
        ],
        "transformations": [{"id": "organize", "options": {"excludeByName": shown}}],
    }


def _datasource() -> Made:
    return {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}


def _namespaces(here: str) -> Made:
    query = f"label_values(lamina_owner_state{{{here}}}, namespace)"
    return {
        "name": "namespace",
        "label": "Namespace",
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": query, "refId": "namespaces"},
        "refresh": 2,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
    }
