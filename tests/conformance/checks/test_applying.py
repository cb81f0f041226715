"""Server-side apply: C59 to C63."""

from datetime import UTC, datetime
from typing import Any

from lamina.testing.waiting import eventually_sync
from tests.bed.scenarios import check
from tests.bed.wire import APPLY, Answer, Api
from tests.conformance.checks.objects import GROUP, widget


def _apply(api: Api, path: str, manager: str, body: dict[str, Any], more: str = "") -> Answer:
    return api.patch(f"{path}?fieldManager={manager}{more}", body, APPLY)


def _first(api: Api, widgets: str) -> Answer:
    body = widget("a1", size=3, ports=[{"name": "a", "port": 1}], tags=["x"], whole=["1"])
    return _apply(api, f"{widgets}/a1", "m1", body)


@check("C59")
def test_an_apply_creates_records_its_fields_and_can_be_repeated(api: Api, widgets: str) -> None:
    made = _first(api, widgets)
    [entry] = made.json["metadata"]["managedFields"]

    assert made.code == 201
    assert (entry["manager"], entry["operation"], entry["fieldsType"]) == ("m1", "Apply", "FieldsV1")
    assert entry["fieldsV1"] == {
        "f:spec": {
            "f:ports": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:port": {}}},
            "f:size": {},
            "f:tags": {'v:"x"': {}},
            "f:whole": {},
        }
    }

    # One second later, so that a wrong implementation would write another time.
    eventually_sync(lambda: datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), lambda now: now > entry["time"])
    again = _first(api, widgets).json
    assert again["metadata"]["resourceVersion"] == made.json["metadata"]["resourceVersion"]


@check("C60")
def test_an_apply_over_another_managers_field_is_refused_unless_forced(api: Api, widgets: str) -> None:
    _first(api, widgets)
    path = f"{widgets}/a1"

    refused = _apply(api, path, "m2", widget(size=4, whole=["3"])).json
    assert (refused["code"], refused["reason"]) == (409, "Conflict")
    causes = [(one["reason"], one["field"], one["message"]) for one in refused["details"]["causes"]]
    assert sorted(causes) == [
        ("FieldManagerConflict", ".spec.size", 'conflict with "m1"'),
        ("FieldManagerConflict", ".spec.whole", 'conflict with "m1"'),
    ]

    forced = _apply(api, path, "m2", widget(size=4), "&force=true").json
    owns = {
        one["manager"]: "f:size" in one["fieldsV1"]["f:spec"] for one in forced["metadata"]["managedFields"]
    }
    assert forced["spec"]["size"] == 4
    assert owns == {"m1": False, "m2": True}

    assert api.patch(path, widget(size=4), APPLY).code == 422
    assert api.patch(f"{path}?force=true", {}).code == 422


@check("C61")
def test_applies_share_lists_and_remove_what_no_manager_applies(api: Api, widgets: str) -> None:
    _first(api, widgets)
    path = f"{widgets}/a1"
    _apply(api, path, "m2", widget(size=4), "&force=true")

    both = _apply(api, path, "m2", widget(size=4, ports=[{"name": "b", "port": 2}], tags=["y"])).json["spec"]
    assert [one["name"] for one in both["ports"]] == ["a", "b"]
    assert sorted(both["tags"]) == ["x", "y"]

    less = _apply(api, path, "m1", widget(size=4, tags=["x"])).json["spec"]
    assert [one["name"] for one in less["ports"]] == ["b"]
    assert "whole" not in less
    assert less["size"] == 4

    least = _apply(api, path, "m2", widget(tags=["y"])).json["spec"]
    assert (least.get("size"), least.get("ports")) == (4, None)


@check("C62")
def test_an_update_takes_ownership_of_what_it_changes(api: Api, widgets: str) -> None:
    _first(api, widgets)
    path = f"{widgets}/a1"

    updated = api.patch(f"{path}?fieldManager=ctl", {"spec": {"color": "blue"}}).json
    owners = [
        (one["manager"], one["operation"])
        for one in updated["metadata"]["managedFields"]
        if "f:color" in one["fieldsV1"].get("f:spec", {})
    ]
    assert owners == [("ctl", "Update")]

    refused = _apply(api, path, "m1", widget(size=3, tags=["x"], color="green")).json
    assert refused["code"] == 409
    said = refused["details"]["causes"][0]["message"]
    assert said in {'conflict with "ctl"', f'conflict with "ctl" using {GROUP}/v1'}


@check("C63")
def test_status_is_applied_through_its_subresource(api: Api, widgets: str) -> None:
    _first(api, widgets)
    status = {"replicas": 9, "conditions": [{"type": "Ready", "status": "True"}]}
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "status": status}

    applied = _apply(api, f"{widgets}/a1/status", "st", body).json
    entries = applied["metadata"]["managedFields"]

    assert applied["status"] == status
    assert [one.get("subresource") for one in entries if one["manager"] == "st"] == ["status"]
    assert applied["metadata"]["generation"] == 1
    assert _apply(api, f"{widgets}/absent/status", "st", body).code == 404
