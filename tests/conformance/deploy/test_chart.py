"""The chart, rendered by Helm: the same objects as `lamina manifests`, and clear refusals."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from lamina.cli.commands.manifests import manifests
from lamina.objects.types import Made
from tests.bed.build import KUBERNETES, MONITORING, built
from tests.bed.helm import CHART, helm, rendered

IMAGE = "registry.example.com/lamina:1"
HELMS_OWN = ("helm.sh/chart", "app.kubernetes.io/managed-by")

EVERYTHING: Made = {
    "imagePullPolicy": "Always",
    "imagePullSecrets": [{"name": "registry"}],
    "replicas": 5,
    "shards": 3,
    "scheduler": False,
    "upstreamLeases": False,
    "logLevel": "debug",
    "logFormat": "text",
    "extraArgs": ["/hooks/web.py", "--workers=9"],
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "extraVolumes": [{"name": "hooks", "configMap": {"name": "hooks"}}],
    "extraVolumeMounts": [{"name": "hooks", "mountPath": "/hooks"}],
    "resources": {"requests": {"cpu": "1"}},
    "podAnnotations": {"note": "yes"},
    "podLabels": {"team": "red"},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"operator": "Exists"}],
    "priorityClassName": "system-cluster-critical",
    "serviceAccount": {"name": "robot", "annotations": {"who": "lamina"}},
    "rbac": {"extraRules": [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["create"]}]},
    "webhook": {"port": 1234},
    "metrics": {
        "port": 9090,
        "probePort": 9091,
        "serviceMonitor": {"enabled": True, "interval": "1m", "labels": {"release": "prometheus"}},
    },
    "alerts": {"enabled": True, "labels": {"release": "prometheus"}},
    "dashboard": {"enabled": True},
    "podDisruptionBudget": {"maxUnavailable": 2},
}
NOTHING: Made = {
    "replicas": 1,
    "installCrds": False,
    "families": {"metacontroller": False, "manifestwork": False, "objectset": False, "resourcegraph": False},
    "serviceAccount": {"create": False, "name": "mine"},
    "rbac": {"create": False},
    "networkPolicy": {"enabled": False},
}


@pytest.mark.parametrize(
    ("name", "namespace", "values"),
    [
        ("lamina", "lamina-system", {}),
        ("roll", "ops", EVERYTHING),
        ("lamina", "lamina-system", NOTHING),
        ("lamina", "lamina-system", {"webhook": {"url": "https://10.0.0.7:9443/hook"}}),
        ("lamina", "lamina-system", {"families": {"manifestwork": False}}),
        ("lamina", "lamina-system", {"families": {"objectset": False, "resourcegraph": False}, "shards": 2}),
    ],
    ids=["defaults", "everything", "nothing", "url", "no hub", "two families"],
)
def test_the_chart_renders_what_manifests_prints(
    tmp_path: Path, name: str, namespace: str, values: Made
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"image": IMAGE, **values}))
    chart = [one for one in rendered("-f", str(file), name=name, namespace=namespace) if not is_hook(one)]

    words = ["-f", str(file), "--name", name, "--namespace", namespace, "-o", "json"]
    done = CliRunner().invoke(manifests, words, catch_exceptions=False)
    first, *plain = json.loads(done.stdout)["items"]

    assert (first["kind"], first["metadata"]["name"]) == ("Namespace", namespace)
    assert by_name([without_helm(one) for one in chart]) == by_name(plain)


def is_hook(obj: Made) -> bool:
    return "helm.sh/hook" in (obj["metadata"].get("annotations") or {})


def without_helm(obj: Made) -> Made:
    labels = {name: value for name, value in obj["metadata"]["labels"].items() if name not in HELMS_OWN}
    assert len(labels) == len(obj["metadata"]["labels"]) - len(HELMS_OWN)
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


def by_name(objects: list[Made]) -> dict[tuple[str, str], Made]:
    named = {(one["kind"], one["metadata"]["name"]): one for one in objects}
    assert len(named) == len(objects)
    return named


def test_the_chart_passes_lint() -> None:
    assert "0 chart(s) failed" in helm("lint", str(CHART), "--strict", "--set", f"image={IMAGE}").stdout


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("replicas=2", "image is required: build one from the Containerfile"),
        ("image=x,replicas=two", "at '/replicas': got string, want integer"),
        ("image=x,familys.objectset=false", "additional properties 'familys' not allowed"),
        ("image=x,logLevel=loud", "at '/logLevel'"),
    ],
)
def test_a_wrong_value_is_refused(setting: str, message: str) -> None:
    refused = helm(
        "template", "lamina", str(CHART), "--kube-version", KUBERNETES, "--set", setting, code=1
    )  # fmt: skip

    assert message in refused.stderr


def test_the_cleanup_can_be_left_out() -> None:
    usual = [one for one in rendered("--set", f"image={IMAGE}") if is_hook(one)]
    without = rendered("--set", f"image={IMAGE},cleanup.enabled=false")

    assert [one["kind"] for one in usual].count("Job") == 1
    assert not any(is_hook(one) for one in without)


def test_the_cleanup_may_do_what_uninstall_does(tmp_path: Path) -> None:
    rules: Made = {"rbac": {"extraRules": EVERYTHING["rbac"]["extraRules"]}}
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"image": IMAGE, **rules}))

    (role,) = (one for one in rendered("-f", str(file)) if is_hook(one) and one["kind"] == "ClusterRole")

    assert rules["rbac"]["extraRules"][0] in role["rules"]
    assert {
        "apiGroups": [""],
        "resources": ["secrets"],
        "verbs": ["get", "delete"],
        "resourceNames": ["lamina-webhook"],
    } in role["rules"]


def checked(objects: list[Made]) -> subprocess.CompletedProcess[str]:
    """Check the objects for the Prometheus operator by its types, and the expressions by Prometheus' parser."""
    by_kind = {one["kind"]: one for one in objects}
    dashboard = json.loads(by_kind["ConfigMap"]["data"]["lamina.json"])
    given = {
        "rule": by_kind["PrometheusRule"],
        "monitor": by_kind["ServiceMonitor"],
        "expressions": [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]],
    }
    return subprocess.run(
        [built(MONITORING)], input=json.dumps(given), capture_output=True, text=True, check=False
    )


def monitored() -> list[Made]:
    asked = "image=x,alerts.enabled=true,dashboard.enabled=true,metrics.serviceMonitor.enabled=true"
    return rendered("--set", asked)


def test_prometheus_accepts_monitor_rules_and_expressions() -> None:
    done = checked(monitored())

    assert (done.returncode, done.stdout) == (0, "2 groups, 12 expressions\n"), done.stderr


def test_prometheus_refuses_a_wrong_rule() -> None:
    objects = monitored()
    (rules,) = (one["spec"]["groups"] for one in objects if one["kind"] == "PrometheusRule")
    rules[0]["rules"][0]["expr"] = "max by (kind lamina_owner_state"
    refused = checked(objects)
    rules[0]["rules"][0] = {"alert": "A", "expr": "up", "durations": "1m"}

    assert refused.returncode == 1 and "could not parse expression" in refused.stderr
    assert 'unknown field "durations"' in checked(objects).stderr
