"""
The values of the chart, each with its default and its description.

values.yaml, values.schema.json and the table in the chart's README are written from
here by `python -m tools.chart`; `lamina manifests` reads the same values.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import yaml
from msgspec import Meta, Struct, field

from lamina.errors import SettingsError
from lamina.objects.types import Made

Port = Annotated[int, Meta(ge=1, le=65535)]


class _Values(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    pass


class Families(_Values, frozen=True):
    """The families to run; each can be left out."""

    metacontroller: Annotated[bool, Meta(description="CompositeController and DecoratorController.")] = True
    manifestwork: Annotated[
        bool, Meta(description="ManifestWorkReplicaSet, ManifestWork, Placement and ManagedCluster.")
    ] = True
    objectset: Annotated[bool, Meta(description="ObjectDeployment and ObjectSet.")] = True
    resourcegraph: Annotated[bool, Meta(description="ResourceGraphDefinition.")] = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.__struct_fields__ if getattr(self, name))


class Account(_Values, frozen=True):
    """The ServiceAccount of the controllers."""

    create: Annotated[bool, Meta(description="Create the ServiceAccount.")] = True
    name: Annotated[str, Meta(description="Its name. Default: that of the installation.")] = ""
    annotations: Annotated[dict[str, str], Meta(description="Its annotations.")] = field(default_factory=dict)


class Rbac(_Values, frozen=True):
    """Roles and bindings."""

    create: Annotated[
        bool, Meta(description="Create the roles that `lamina rbac` prints, and their bindings.")
    ] = True
    aggregate_roles: Annotated[
        bool,
        Meta(
            description="Create roles that add the kinds of the families to the built-in roles view, edit and admin."
        ),
    ] = True
    extra_rules: Annotated[
        list[dict[str, Any]],
        Meta(
            description="Further rules of the ClusterRole: for the kinds that your controllers, ObjectSets and resource graphs write."
        ),
    ] = field(default_factory=list)


class Webhook(_Values, frozen=True):
    """The validating webhook of ManifestWorks; not installed without the family manifestwork."""

    enabled: Annotated[bool, Meta(description="Register and serve it.")] = True
    url: Annotated[
        str,
        Meta(
            description="URL at which the API server calls it. Default: the Service, which is then created."
        ),
    ] = ""
    port: Annotated[Port, Meta(description="Port that it listens on.")] = 9443


class ServiceMonitor(_Values, frozen=True):
    """A ServiceMonitor for the Prometheus operator."""

    enabled: Annotated[bool, Meta(description="Create it.")] = False
    interval: Annotated[str, Meta(description="Period of scrapes.")] = "30s"
    labels: Annotated[dict[str, str], Meta(description="Labels that your Prometheus selects.")] = field(
        default_factory=dict
    )


class Metrics(_Values, frozen=True):
    """The endpoints for Prometheus and for probes."""

    port: Annotated[Port, Meta(description="Port of /metrics.")] = 8080
    probe_port: Annotated[Port, Meta(description="Port of /healthz and /readyz.")] = 8081
    service_monitor: ServiceMonitor = ServiceMonitor()


class Alerts(_Values, frozen=True):
    """A PrometheusRule for the Prometheus operator."""

    enabled: Annotated[bool, Meta(description="Create it.")] = False
    labels: Annotated[dict[str, str], Meta(description="Labels that your Prometheus selects.")] = field(
        default_factory=dict
    )


class Dashboard(_Values, frozen=True):
    """A Grafana dashboard in a ConfigMap."""

    enabled: Annotated[bool, Meta(description="Create it.")] = False
    labels: Annotated[dict[str, str], Meta(description="Labels that Grafana's sidecar selects.")] = field(
        default_factory=lambda: {"grafana_dashboard": "1"}
    )


class DisruptionBudget(_Values, frozen=True):
    """A PodDisruptionBudget."""

    enabled: Annotated[bool, Meta(description="Create it, if there is more than one replica.")] = True
    max_unavailable: Annotated[int, Meta(ge=1, description="Replicas that may be evicted at a time.")] = 1


class NetworkPolicy(_Values, frozen=True):
    """A NetworkPolicy for the pods: only the served ports are reachable; what the pods call is not restricted."""

    enabled: Annotated[bool, Meta(description="Create it.")] = True


class Cleanup(_Values, frozen=True):
    """A Job that runs `lamina uninstall` after `helm uninstall`."""

    enabled: Annotated[
        bool,
        Meta(
            description="Run it. Without it, webhook, finalizers, Secret and Leases stay until `lamina uninstall`."
        ),
    ] = True


class Values(_Values, frozen=True):
    """The values of the chart."""

    image: Annotated[
        str,
        Meta(description="Image of Lamina, built from the Containerfile; required."),
    ] = ""
    image_pull_policy: Annotated[
        str,
        Meta(description="Always, IfNotPresent or Never.", pattern="^(Always|IfNotPresent|Never)$"),
    ] = "IfNotPresent"
    image_pull_secrets: Annotated[
        list[dict[str, str]], Meta(description="Secrets for the image's registry, each with a name.")
    ] = field(default_factory=list)
    replicas: Annotated[
        int, Meta(ge=0, description="Replicas. One works on each shard, the others wait for its Lease.")
    ] = 2
    shards: Annotated[
        int, Meta(ge=1, le=1000, description="Shards of owners, each with a Lease; no more than replicas.")
    ] = 1
    families: Families = Families()
    install_crds: Annotated[
        bool,
        Meta(
            description="Install and upgrade the CustomResourceDefinitions at each start (`lamina run --install`)."
        ),
    ] = True
    scheduler: Annotated[
        bool,
        Meta(
            description="Schedule Placements and reconcile ManagedClusters; false if Open Cluster Management's controllers do that."
        ),
    ] = True
    upstream_leases: Annotated[
        bool,
        Meta(
            description="Also hold the leader Leases of the originals, and wait while an original holds one; false for --no-upstream-lease."
        ),
    ] = True
    log_level: Annotated[
        str,
        Meta(
            description="Minimum log level: debug, info, warning or error.",
            pattern="^(debug|info|warning|error)$",
        ),
    ] = "info"
    log_format: Annotated[str, Meta(description="Log format: text or json.", pattern="^(text|json)$")] = (
        "json"
    )
    extra_args: Annotated[
        list[str], Meta(description="Further arguments of `lamina run`, such as files with hooks.")
    ] = field(default_factory=list)
    env: Annotated[
        list[dict[str, Any]], Meta(description="Environment of the container, such as HTTPS_PROXY.")
    ] = field(default_factory=list)
    extra_volumes: Annotated[
        list[dict[str, Any]], Meta(description="Further volumes of the pod, such as a ConfigMap with hooks.")
    ] = field(default_factory=list)
    extra_volume_mounts: Annotated[
        list[dict[str, Any]], Meta(description="Further mounts of the container.")
    ] = field(default_factory=list)
    resources: Annotated[dict[str, Any], Meta(description="Resources of the container.")] = field(
        default_factory=lambda: {
            "requests": {"cpu": "100m", "memory": "256Mi"},
            "limits": {"memory": "1Gi"},
        }
    )
    pod_annotations: Annotated[dict[str, str], Meta(description="Annotations of the pods.")] = field(
        default_factory=dict
    )
    pod_labels: Annotated[dict[str, str], Meta(description="Further labels of the pods.")] = field(
        default_factory=dict
    )
    node_selector: Annotated[dict[str, str], Meta(description="Labels of the nodes for the pods.")] = field(
        default_factory=dict
    )
    tolerations: Annotated[list[dict[str, Any]], Meta(description="Tolerations of the pods.")] = field(
        default_factory=list
    )
    priority_class_name: Annotated[str, Meta(description="Priority class of the pods.")] = ""
    service_account: Account = Account()
    rbac: Rbac = Rbac()
    webhook: Webhook = Webhook()
    metrics: Metrics = Metrics()
    alerts: Alerts = Alerts()
    dashboard: Dashboard = Dashboard()
    pod_disruption_budget: DisruptionBudget = DisruptionBudget()
    network_policy: NetworkPolicy = NetworkPolicy()
    cleanup: Cleanup = Cleanup()

    @property
    def has_webhook(self) -> bool:
        return self.webhook.enabled and self.families.manifestwork


def parse_values(tree: Made, source: str = "the values") -> Values:
    """Return the values in a tree, with defaults for the rest; raises SettingsError that names a wrong one."""
    try:
        return msgspec.convert(merged(msgspec.to_builtins(Values()), tree), Values)
    except msgspec.ValidationError as error:
        raise SettingsError(f"{source}: {error}", hint="charts/lamina/README.md lists the values") from None


def merged(under: Made, over: Made) -> Made:
    """Return a tree with another one on top, as Helm merges values: maps by key, null removes, the rest is replaced."""
    both = {
        name: merged(under[name], over[name])
        for name in under.keys() & over.keys()
        if isinstance(under[name], dict) and isinstance(over[name], dict)
    }
    return {name: value for name, value in {**under, **over, **both}.items() if value is not None}


def setting(text: str) -> Made:
    """Return the tree of one value, as `families.objectset=false`; the value is read as YAML."""
    path, equals, value = text.partition("=")
    if not equals or not all(path.split(".")):
        raise SettingsError(
            f"--set: expected NAME=VALUE, got {text!r}", hint="for example families.objectset=false"
        )
    try:
        tree: Any = yaml.safe_load(value)
    except yaml.YAMLError:
        tree = value
    for name in reversed(path.split(".")):
        tree = {name: tree}
    return dict(tree)
