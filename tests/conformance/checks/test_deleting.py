"""Deletion, garbage collection and namespaces: C51 to C58."""

import json
from typing import Any

from lamina.testing.waiting import eventually_sync
from tests.bed.kubectl import Kubectl
from tests.bed.scenarios import check
from tests.bed.wire import Api
from tests.conformance.checks.objects import GROUP, NAMESPACES, config_map, owned, owner, widget

HOLD = f"{GROUP}/hold"


def _made(api: Api, path: str, name: str) -> str:
    """Create a ConfigMap and return its uid."""
    return str(api.post(path, config_map(name)).json["metadata"]["uid"])


@check("C51")
def test_a_finalizer_holds_an_object_until_it_is_taken_away(api: Api, widgets: str) -> None:
    held = widget("fin", size=1)
    held["metadata"]["finalizers"] = [HOLD]
    api.post(widgets, held)
    path = f"{widgets}/fin"

    ending = api.delete(path).json
    assert ending["kind"] == "Widget"
    assert "deletionTimestamp" in ending["metadata"]
    assert ending["metadata"]["deletionGracePeriodSeconds"] == 0
    assert ending["metadata"]["generation"] == 2

    assert api.patch(path, {"metadata": {"finalizers": [HOLD, f"{GROUP}/late"]}}).json["code"] == 422
    assert api.patch(path, {"metadata": {"finalizers": []}}).json["kind"] == "Widget"
    assert api.get(path).code == 404


@check("C52")
def test_a_deletion_can_be_conditional_and_says_what_it_deleted(api: Api, configmaps: str) -> None:
    uid = _made(api, configmaps, "del")
    path = f"{configmaps}/del"

    for condition in ({"uid": "zzz"}, {"resourceVersion": "1"}):
        refused = api.delete(path, {"preconditions": condition}).json
        assert (refused["code"], refused["reason"]) == (409, "Conflict")
    assert api.delete(f"{path}?propagationPolicy=Bogus").code == 422

    gone = api.delete(path).json
    assert (gone["kind"], gone["status"]) == ("Status", "Success")
    assert gone["details"] == {"name": "del", "kind": "configmaps", "uid": uid}
    assert api.delete(path).code == 404


@check("C53")
def test_a_collection_is_deleted_by_selector(api: Api, configmaps: str) -> None:
    for number in range(7):
        api.post(configmaps, config_map(f"ch-{number}", {"chunk": "y"}))
    api.post(configmaps, config_map("other"))

    deleted = api.delete(f"{configmaps}?labelSelector=chunk%3Dy").json

    assert (deleted["kind"], len(deleted["items"])) == ("ConfigMapList", 7)
    assert api.get(f"{configmaps}?labelSelector=chunk%3Dy").json["items"] == []
    assert api.get(f"{configmaps}/other").code == 200


@check("C54")
def test_dependents_go_after_their_owner(api: Api, kubectl: Kubectl, configmaps: str) -> None:
    uid = _made(api, configmaps, "own")
    api.post(configmaps, owned("dependent", owner("own", uid)))

    kubectl("delete", "cm", "own")
    kubectl("wait", "--for=delete", "cm/dependent", "--timeout=120s")

    assert api.get(f"{configmaps}/dependent").code == 404


@check("C55")
def test_a_foreground_deletion_waits_for_blocking_dependents(
    api: Api, kubectl: Kubectl, configmaps: str
) -> None:
    uid = _made(api, configmaps, "own")
    api.post(configmaps, owned("dependent", owner("own", uid, blockOwnerDeletion=True), finalizers=[HOLD]))

    ending = api.delete(f"{configmaps}/own", {"propagationPolicy": "Foreground"}).json
    assert ending["metadata"]["finalizers"] == ["foregroundDeletion"]
    eventually_sync(lambda: "deletionTimestamp" in api.get(f"{configmaps}/dependent").json["metadata"])
    assert api.get(f"{configmaps}/own").code == 200

    api.patch(f"{configmaps}/dependent", {"metadata": {"finalizers": None}})
    kubectl("wait", "--for=delete", "cm/own", "--timeout=120s")
    assert api.get(f"{configmaps}/own").code == 404


@check("C56")
def test_an_orphaning_deletion_frees_the_dependents(api: Api, kubectl: Kubectl, configmaps: str) -> None:
    uid = _made(api, configmaps, "own")
    api.post(configmaps, owned("dependent", owner("own", uid)))

    kubectl("delete", "cm", "own", "--cascade=orphan")

    eventually_sync(lambda: api.get(f"{configmaps}/own").code, lambda found: found == 404)
    assert api.get(f"{configmaps}/dependent").json["metadata"].get("ownerReferences") is None


@check("C57")
def test_owners_that_do_not_exist_own_nothing(api: Api, configmaps: str) -> None:
    uid = _made(api, configmaps, "here")
    missing = "11111111-1111-1111-1111-111111111111"
    api.post(configmaps, owned("alone", owner("zzz", missing)))
    api.post(configmaps, owned("shared", owner("here", uid), owner("zzz", missing)))

    def owners() -> list[str]:
        return [one["name"] for one in api.get(f"{configmaps}/shared").json["metadata"]["ownerReferences"]]

    eventually_sync(lambda: api.get(f"{configmaps}/alone").code, lambda found: found == 404)
    eventually_sync(owners, lambda found: found == ["here"])
    two = owned("two", owner("a", "1", controller=True), owner("b", "2", controller=True))
    assert api.post(configmaps, two).code == 422


@check("C58")
def test_a_namespace_lives_and_ends_with_what_is_in_it(api: Api, kubectl: Kubectl, namespace: str) -> None:
    name = f"{namespace}-ends"
    path = f"{NAMESPACES}/{name}"
    inside = kubectl.within(name)

    def now() -> dict[str, Any]:
        return dict(api.get(path).json)

    kubectl("create", "ns", name)
    started = now()
    assert started["status"]["phase"] == "Active"
    assert started["spec"]["finalizers"] == ["kubernetes"]
    assert started["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    eventually_sync(lambda: api.get(f"{path}/serviceaccounts/default").code, lambda found: found == 200)

    inside("create", "cm", "held")
    inside("patch", "cm", "held", "--type=merge", "-p", json.dumps({"metadata": {"finalizers": [HOLD]}}))
    kubectl("delete", "ns", name, "--wait=false")

    def remaining() -> list[str]:
        conditions = now()["status"].get("conditions") or []
        return [one["status"] for one in conditions if one["type"] == "NamespaceFinalizersRemaining"]

    eventually_sync(remaining, lambda found: found == ["True"])
    assert now()["status"]["phase"] == "Terminating"
    ended = f"forbidden: unable to create new content in namespace {name} because it is being terminated"
    assert ended in inside.attempt("create", "cm", "x").both
    refused = api.post(f"{path}/configmaps", config_map("y")).json
    assert refused["code"] == 403
    assert refused["details"]["causes"][0]["reason"] == "NamespaceTerminating"

    inside("patch", "cm", "held", "--type=merge", "-p", json.dumps({"metadata": {"finalizers": None}}))
    kubectl("wait", "--for=delete", f"ns/{name}", "--timeout=120s")
    assert api.get(path).code == 404
    assert api.delete(f"{NAMESPACES}/default").code == 403
