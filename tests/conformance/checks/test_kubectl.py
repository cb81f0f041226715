"""kubectl's verbs, and the kinds that controllers use: C64 to C68, and C78."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from tests.bed.kubectl import Kubectl
from tests.bed.scenarios import check
from tests.bed.wire import Api
from tests.conformance.checks.objects import GROUP, NAMESPACES, config_map, widget


def _manifest(**data: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap"} | config_map("ka", **data))


@check("C64")
def test_apply_creates_changes_removes_and_moves_to_the_server_side(kubectl: Kubectl) -> None:
    def apply(*options: str, **data: str) -> str:
        return kubectl("apply", *options, "-f", "-", given=_manifest(**data)).strip()

    assert apply(a="1", b="2") == "configmap/ka created"
    assert apply(a="1", b="2") == "configmap/ka unchanged"
    assert apply(a="9") == "configmap/ka configured"
    assert kubectl("get", "cm", "ka", "-o", "jsonpath={.data}") == '{"a":"9"}'
    assert apply("--server-side", a="9") == "configmap/ka serverside-applied"

    left = json.loads(kubectl("get", "cm", "ka", "--show-managed-fields", "-o", "json"))
    managers = [(one["manager"], one["operation"]) for one in left["metadata"]["managedFields"]]
    assert ("kubectl", "Apply") in managers
    assert "kubectl-client-side-apply" not in [name for name, _ in managers]


@check("C65")
def test_diff_shows_what_an_apply_would_change_and_changes_nothing(
    api: Api, kubectl: Kubectl, widgets: str
) -> None:
    kubectl("apply", "--server-side", "-f", "-", given=_manifest(a="9"))

    same = kubectl.attempt("diff", "--server-side", "-f", "-", given=_manifest(a="9"))
    other = kubectl.attempt("diff", "--server-side", "-f", "-", given=_manifest(a="10"))
    new = kubectl.attempt("diff", "-f", "-", given=json.dumps(widget("new", size=2)))

    assert (same.code, same.out) == (0, "")
    changed = [line for line in other.out.splitlines() if re.match(r"[+-] ", line)]
    assert changed == ['-  a: "9"', '+  a: "10"']
    assert new.code == 1
    assert api.get(f"{widgets}/new").code == 404


@check("C66")
def test_edit_label_annotate_patch_and_wait(api: Api, kubectl: Kubectl, widgets: str) -> None:
    api.post(widgets, widget("pr", size=1))
    name = f"widget.{GROUP}/pr"

    edited = kubectl.attempt("edit", "wd", "pr", editor=r"sed -i s/size:.[0-9]*/size:\ 9/")
    assert edited.out == f"{name} edited\n", edited.both
    assert kubectl("get", "wd", "pr", "-o", "jsonpath={.spec.size}") == "9"
    assert kubectl("label", "wd", "pr", "tier=x") == f"{name} labeled\n"
    assert kubectl("annotate", "wd", "pr", "note=hello") == f"{name} annotated\n"
    replace = json.dumps([{"op": "replace", "path": "/spec/size", "value": 8}])
    assert kubectl("patch", "wd", "pr", "--type=json", "-p", replace) == f"{name} patched\n"
    assert "condition met" in kubectl("wait", "--for=jsonpath={.spec.size}=8", "wd/pr", "--timeout=120s")

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(kubectl, "wait", "--for=condition=Ready", "wd/pr", "--timeout=120s")
        ready = json.dumps({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        kubectl("patch", "wd", "pr", "--subresource=status", "--type=merge", "-p", ready)
        assert "condition met" in waiting.result()

    columns = "custom-columns=N:.metadata.name,S:.spec.size"
    assert kubectl("get", "wd", "-l", "tier=x", "-o", columns, "--no-headers").split() == ["pr", "8"]


@check("C67")
def test_events_are_told_by_describe_and_events_and_both_groups(
    api: Api, kubectl: Kubectl, namespace: str, widgets: str
) -> None:
    uid = api.post(widgets, widget("pr", size=1)).json["metadata"]["uid"]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.123456+00:00")
    about = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "name": "pr", "namespace": namespace, "uid": uid}
    event = {
        "metadata": {"generateName": "ev-"},
        "involvedObject": about,
        "reason": "Tested",
        "message": "hello there",
        "type": "Normal",
        "firstTimestamp": now,
        "lastTimestamp": now,
        "eventTime": now,
        "reportingComponent": "checks",
        "reportingInstance": "x",
        "action": "a",
        "source": {"component": "checks"},
    }

    made = api.post(f"{NAMESPACES}/{namespace}/events", event).json

    assert (made["kind"], made["lastTimestamp"][-1], len(made["eventTime"])) == ("Event", "Z", 27)
    assert re.search(r"Tested .*hello there", kubectl("describe", "wd", "pr"))
    assert re.search(r"Tested .*hello there", kubectl("events", "--for", "widget/pr"))
    selector = "involvedObject.name=pr,reason=Tested"
    assert len(kubectl("get", "events", "--field-selector", selector, "--no-headers").splitlines()) == 1
    newer = api.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events").json
    assert [one["note"] for one in newer["items"] if one["reason"] == "Tested"] == ["hello there"]


@check("C68")
def test_leases_keep_microseconds_and_one_holder(api: Api, kubectl: Kubectl, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    moment = "2026-01-01T00:00:00.000001Z"
    spec = {
        "holderIdentity": "a",
        "leaseDurationSeconds": 15,
        "acquireTime": moment,
        "renewTime": moment,
        "leaseTransitions": 0,
    }
    made = api.post(path, {"metadata": {"name": "lead"}, "spec": spec}).json
    version = made["metadata"]["resourceVersion"]

    def take(holder: str) -> int:
        body = {"metadata": {"name": "lead", "resourceVersion": version}, "spec": {"holderIdentity": holder}}
        return api.put(f"{path}/lead", body).code

    assert (made["spec"]["renewTime"], made["spec"]["leaseTransitions"]) == (moment, 0)
    assert (take("b"), take("c")) == (200, 409)
    assert re.match(r"lead +b +\d", kubectl("get", "lease", "lead", "--no-headers"))


@check("C78")
def test_no_update_of_concurrent_writers_is_lost(api: Api, configmaps: str) -> None:
    api.post(configmaps, config_map("race"))

    def write(number: int) -> int:
        return api.patch(f"{configmaps}/race", {"data": {f"k{number}": "v"}}).code

    with ThreadPoolExecutor(20) as threads:
        assert set(threads.map(write, range(20))) == {200}

    assert len(api.get(f"{configmaps}/race").json["data"]) == 20
