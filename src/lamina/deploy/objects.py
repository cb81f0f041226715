"""
The objects of an installation, the same as those of the chart.

A test renders the chart with Helm and compares: what is said here in Python is said
in charts/lamina/templates in Helm's language.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lamina.deploy import monitoring, pod, roles
from lamina.deploy.installation import Installation
from lamina.deploy.values import Values
from lamina.families.registry import FamilyOptions, chosen
from lamina.objects.types import Made
from lamina.runtime.controller.leader_election import lease_names

_RBAC = "rbac.authorization.k8s.io"
_WEBHOOK_PORT = 443


def objects(install: Installation) -> list[Made]:
    """Return the objects of an installation, in the order in which they are applied."""
    return list(_objects(install))


def namespace(install: Installation) -> Made:
    """Return the namespace, which Helm creates with --create-namespace; its pods satisfy the strictest standard."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": install.namespace,
            "labels": {"pod-security.kubernetes.io/enforce": "restricted"},
        },
    }


def _objects(install: Installation) -> Iterator[Made]:
    values = install.values
    if values.service_account.create:
        annotations = values.service_account.annotations
        metadata = install.metadata(install.account)
        yield {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {**metadata, **({"annotations": annotations} if annotations else {})},
        }
    if values.rbac.create:
        yield from _bound(install, "ClusterRole", cluster_rules(values))
        yield from _bound(install, "Role", own_rules(install))
        if values.rbac.aggregate_roles:
            yield from _aggregated(install)
    if values.has_webhook and not values.webhook.url:
        yield _webhook_service(install)
    yield _metrics_service(install)
    yield pod.deployment(install)
    if values.pod_disruption_budget.enabled and values.replicas > 1:
        yield _disruption_budget(install)
    if values.network_policy.enabled:
        yield _network_policy(install)
    yield from monitoring.objects(install)


def cluster_rules(values: Values) -> list[Made]:
    """Return the rules of the ClusterRole: those of all parts, each once."""
    options = FamilyOptions(schedules=values.scheduler, registers=values.scheduler)
    families = chosen(",".join(values.families.names) or "none", options)
    needed = [
        roles.base_rights(),
        *([roles.install_rights()] if values.install_crds else []),
        *(family.rights(()) for family in families),
        *(roles.upstream_rights(family) for family in families if values.upstream_leases),
        *([roles.webhook_rights(families)] if values.has_webhook else []),
    ]
    return _each_once([*(rule for rights in needed for rule in rights.rules()), *values.rbac.extra_rules])


def own_rules(install: Installation) -> list[Made]:
    """Return the rules of the Role in the namespace of the installation."""
    names = lease_names(install.name, install.values.shards)
    rules = roles.lease_rights(names).rules()
    return rules + (roles.secret_rights().rules() if install.values.has_webhook else [])


def _each_once(rules: Sequence[Made]) -> list[Made]:
    return [rule for place, rule in enumerate(rules) if rule not in rules[:place]]


def _bound(install: Installation, kind: str, rules: list[Made]) -> Iterator[Made]:
    metadata = install.metadata(namespaced=kind == "Role")
    yield {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}
    yield {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": install.name},
        "subjects": [{"kind": "ServiceAccount", "name": install.account, "namespace": install.namespace}],
    }


def _aggregated(install: Installation) -> Iterator[Made]:
    """Yield the roles that aggregate to those of users."""
    families = chosen(",".join(install.values.families.names) or "none")
    for suffix, rights, targets in (
        ("view", roles.view_rights, ("view", "edit", "admin")),
        ("edit", roles.edit_rights, ("edit", "admin")),
    ):
        labels = {f"{_RBAC}/aggregate-to-{target}": "true" for target in targets}
        yield {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": install.metadata(f"{install.name}-{suffix}", namespaced=False, labels=labels),
            "rules": [rule for family in families for rule in rights(family).rules()],
        }


def _webhook_service(install: Installation) -> Made:
    port = {"name": "webhook", "port": _WEBHOOK_PORT, "targetPort": "webhook"}
    return _service(install, f"{install.name}-webhook", port, "webhook")


def _metrics_service(install: Installation) -> Made:
    port = {"name": "metrics", "port": install.values.metrics.port, "targetPort": "metrics"}
    return _service(install, f"{install.name}-metrics", port, "metrics")


def _service(install: Installation, name: str, port: Made, component: str) -> Made:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": install.metadata(name, labels={"app.kubernetes.io/component": component}),
        "spec": {"selector": install.selector, "ports": [{**port, "protocol": "TCP"}]},
    }


def _disruption_budget(install: Installation) -> Made:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": install.metadata(),
        "spec": {
            "maxUnavailable": install.values.pod_disruption_budget.max_unavailable,
            "selector": {"matchLabels": install.selector},
        },
    }


def _network_policy(install: Installation) -> Made:
    ports = ["metrics", "probes", *(["webhook"] if install.values.has_webhook else [])]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": install.metadata(),
        "spec": {
            "podSelector": {"matchLabels": install.selector},
            "policyTypes": ["Ingress"],
            # Any source: the API server, which calls the webhook, has no labels that a policy could select.
            "ingress": [{"ports": [{"port": port, "protocol": "TCP"} for port in ports]}],
        },
    }
