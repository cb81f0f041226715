"""The alert rules of the chart, for Prometheus: what is wrong, for how long, and the command that shows more."""

from __future__ import annotations

from lamina.core.model.state import State
from lamina.objects.types import Made

_OWNER = "{{ $labels.kind }}/{{ $labels.name }} in namespace {{ $labels.namespace }}"
_SHOW = "`lamina get {{ $labels.kind }}/{{ $labels.name }} -n {{ $labels.namespace }}` shows its targets and the reason."


def groups(job: str) -> list[Made]:
    """Return the rule groups; `job` is the value of the label `job` of the scraped series."""
    return [
        {"name": "lamina.owners", "rules": _owner_rules(job)},
        {"name": "lamina.controllers", "rules": _controller_rules(job)},
    ]


def _owner_rules(job: str) -> list[Made]:
    aborted = "|".join((State.ABORTING, State.ABORTED))
    return [
        _rule(
            "LaminaRolloutAborted",
            f'max by (kind, namespace, name) (lamina_owner_state{{job="{job}",state=~"{aborted}"}}) == 1',
            "0m",
            f"the rollout of {_OWNER} was aborted",
            _SHOW,
        ),
        _lasting(job, "LaminaOwnerDegraded", State.DEGRADED, 600, "has been degraded for 10 minutes"),
        _lasting(job, "LaminaOwnerUnknown", State.UNKNOWN, 900, "has had no status for 15 minutes"),
        _lasting(job, "LaminaOwnerPaused", State.PAUSED, 86400, "has been paused for a day", "info"),
        _lasting(job, "LaminaDeletionStuck", State.DELETING, 3600, "has been in deletion for an hour"),
    ]


def _lasting(job: str, name: str, state: State, seconds: int, text: str, severity: str = "warning") -> Made:
    """
    Return an alert about owners that have been in a state for some time.

    The time is counted from what the owner records, so it does not start again when
    another replica or a new pod reports it.
    """
    since = f'lamina_owner_state_since_seconds{{job="{job}",state=~"{state}"}}'
    expression = f"time() - min by (kind, namespace, name) ({since}) > {seconds}"
    return _rule(name, expression, "1m", f"{_OWNER} {text}", _SHOW, severity)


def _controller_rules(job: str) -> list[Made]:
    here = f'job="{job}"'
    return [
        _rule(
            "LaminaDown", f'absent(up{{{here}}} == 1)', "5m",
            "no replica of Lamina is running",
            "Nothing is rolled out, aborted or deleted until one runs; what runs on the clusters is not affected.",
            "critical",
        ),
        _rule(
            "LaminaWithoutLeader",
            f"max by (name) (leader_election_master_status{{{here}}}) == 0", "5m",
            "no replica of Lamina holds Lease {{ $labels.name }}",
            "The log of the replicas says why: a Lease of another process, or a missing right on Leases.",
            "critical",
        ),
        _rule(
            "LaminaReconcileErrors",
            f"sum by (controller) (rate(controller_runtime_reconcile_errors_total{{{here}}}[5m])) > 0", "15m",
            "reconciles of {{ $labels.controller }} have failed for 15 minutes",
            "The log and the events of the owners have the error.",
        ),
        _rule(
            "LaminaReconcilePanics",
            f"sum by (controller) (increase(controller_runtime_reconcile_panics_total{{{here}}}[15m])) > 0", "0m",
            "a reconcile of {{ $labels.controller }} failed with an unexpected error",
            "This is a bug of Lamina: the log has the traceback.",
        ),
        _rule(
            "LaminaHookErrors",
            'sum by (controller_name, url) (rate(metacontroller_sync_requests_total{'
            f'{here},code!~"2.."}}[5m])) > 0', "10m",
            "calls of the hook {{ $labels.url }} of {{ $labels.controller_name }} have failed for 10 minutes",
            "Its parents are not reconciled until it answers; their events have the error.",
        ),
        _rule(
            "LaminaForbidden",
            f'sum by (host) (rate(rest_client_requests_total{{{here},code="403"}}[5m])) > 0', "10m",
            "the API server {{ $labels.host }} has refused requests of Lamina for 10 minutes",
            "A role lacks rights: the log names them, and `lamina rbac` prints the role for the controllers there are.",
        ),
        _rule(
            "LaminaQueueGrowing",
            f"max by (name) (workqueue_depth{{{here}}}) > 100 and max by (name) (deriv(workqueue_depth{{{here}}}[10m])) > 0",
            "15m",
            "the workqueue {{ $labels.name }} has more than 100 keys and grows",
            "Reconciles are slower than changes: see controller_runtime_reconcile_time_seconds, and --workers.",
        ),
    ]  # fmt: skip


def _rule(
    name: str, expression: str, duration: str, summary: str, description: str, severity: str = "warning"
) -> Made:
    return {
        "alert": name,
        "expr": expression,
        "for": duration,
        "labels": {"severity": severity},
        "annotations": {"summary": summary, "description": description},
    }
