"""
Built-in kinds, whose structs are always there.

What is expected here is what kube-apiserver 1.35.4 answered.
"""

import json
from typing import Any

import pytest

from lamina.errors import Conflict, Unclassified
from lamina.merge.apply import Manager, apply, track_update
from lamina.merge.schema import Schema, Schemas
from lamina.server.kinds.builtin.definitions import definition

NOW = "2026-01-01T00:00:00Z"
SCHEMAS = Schemas(definition)
CONFIG_MAP = SCHEMAS.named("io.k8s.api.core.v1.ConfigMap")
DEPLOYMENT = SCHEMAS.named("io.k8s.api.apps.v1.Deployment")


def _created(schema: Schema, obj: dict[str, Any], version: str = "v1") -> Any:
    entries = track_update(None, obj, schema, manager=Manager("kubectl", "Update", version), now=NOW)
    return entries[0]["fieldsV1"] if entries else {}


def test_a_creator_does_not_own_the_structs_that_hold_what_it_wrote() -> None:
    container = {
        "name": "web",
        "image": "nginx",
        "imagePullPolicy": "Always",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {},
    }
    deployment = {
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "web"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container], "securityContext": {}},
            },
        },
        "status": {},
    }

    assert _created(DEPLOYMENT, deployment, "apps/v1") == {
        "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"web"}': {
                            ".": {},
                            "f:image": {},
                            "f:imagePullPolicy": {},
                            "f:name": {},
                            "f:ports": {
                                ".": {},
                                'k:{"containerPort":80,"protocol":"TCP"}': {
                                    ".": {},
                                    "f:containerPort": {},
                                    "f:protocol": {},
                                },
                            },
                            "f:resources": {},
                        }
                    },
                    "f:securityContext": {},
                },
            },
        },
    }  # fmt: skip


def test_nulls_and_zeros_that_are_always_written_have_no_owner() -> None:
    event = {
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod", "name": "p"},
        "reason": "R",
        "eventTime": None,
        "firstTimestamp": None,
        "reportingComponent": "",
        "source": {},
    }

    assert _created(SCHEMAS.named("io.k8s.api.core.v1.Event"), event) == {
        "f:involvedObject": {},
        "f:reason": {},
    }


def test_raw_extensions_are_owned_whole() -> None:
    revision = {"metadata": {"name": "r"}, "revision": 1, "data": {"spec": {"a": [1]}}}
    schema = SCHEMAS.named("io.k8s.api.apps.v1.ControllerRevision")

    assert _created(schema, revision, "apps/v1") == {"f:data": {}, "f:revision": {}}


def test_quantities_may_be_numbers_or_text() -> None:
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": 5, "memory": "1Gi"}}}
    schema = SCHEMAS.named("io.k8s.api.core.v1.ResourceQuota")

    outcome = apply(None, quota, schema, manager=Manager("a", "Apply", "v1"), force=False, now=NOW)

    assert outcome.managed_fields[0]["fieldsV1"] == {"f:spec": {"f:hard": {"f:memory": {}, "f:pods": {}}}}


def test_a_conflict_with_an_applier_and_an_updater() -> None:
    live = {
        "metadata": {
            "name": "f1",
            "uid": "1",
            "managedFields": [
                {"manager": "m1", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}}}},
                {"manager": "probe", "operation": "Update", "apiVersion": "v1", "time": NOW, "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {".": {}, "f:a": {}, "f:b": {}}}},
            ],
        },
        "data": {"a": "2", "b": "1"},
    }  # fmt: skip

    with pytest.raises(Conflict) as refused:
        _apply(live, {"data": {"a": "3", "b": "7"}}, "m2")

    assert refused.value.message == (
        'Apply failed with 3 conflicts: conflicts with "m1":\n- .data.a\n'
        'conflicts with "probe" using v1:\n- .data.a\n- .data.b'
    )


def test_where_the_kind_is_not_written_it_is_told_from_the_request() -> None:
    with pytest.raises(Unclassified) as refused:
        apply(
            None,
            {"metadata": {"name": "x", "namespace": "ns"}, "spec": {}},
            CONFIG_MAP,
            manager=Manager("m", "Apply", "v1"),
            force=False,
            now=NOW,
            kind="ConfigMap",
        )

    assert refused.value.message == (
        "failed to create typed patch object (ns/x; /v1, Kind=ConfigMap): .spec: field not declared in schema"
    )


def test_an_empty_list_of_entries_starts_again_with_nothing() -> None:
    live = _apply(None, {"data": {"a": "1"}}, "m1")

    emptied = {**live, "metadata": {**live["metadata"], "managedFields": []}}

    assert track_update(live, emptied, CONFIG_MAP, manager=Manager("x", "Update", "v1"), now=NOW) == []


# kubectl's own apply

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _apply(live: dict[str, Any] | None, stated: dict[str, Any], manager: str, **how: Any) -> dict[str, Any]:
    stated = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "f1"}, **stated}
    outcome = apply(
        live,
        stated,
        CONFIG_MAP,
        manager=Manager(manager, "Apply", "v1"),
        force=how.get("force", False),
        now=NOW,
    )
    metadata = {"uid": "1", **outcome.obj["metadata"], "managedFields": outcome.managed_fields}
    return {**outcome.obj, "metadata": metadata}


def _client_side_applied(data: dict[str, str]) -> dict[str, Any]:
    last = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "f1"}, "data": data}
    live: dict[str, Any] = {
        "metadata": {"name": "f1", "uid": "1", "annotations": {LAST_APPLIED: json.dumps(last)}},
        "data": data,
    }
    writer = Manager("kubectl-client-side-apply", "Update", "v1")
    live["metadata"]["managedFields"] = track_update(None, live, CONFIG_MAP, manager=writer, now=NOW)
    return live


def test_kubectl_may_change_what_kubectl_applied_and_keeps_its_note_up_to_date() -> None:
    live = _client_side_applied({"a": "1", "b": "2"})

    after = _apply(live, {"data": {"a": "9", "b": "2 < 3"}}, "kubectl")

    assert after["data"] == {"a": "9", "b": "2 < 3"}
    assert after["metadata"]["annotations"][LAST_APPLIED] == (
        '{"apiVersion":"v1","data":{"a":"9","b":"2 \\u003c 3"},"kind":"ConfigMap","metadata":{"name":"f1"}}\n'
    )


def test_but_not_what_was_changed_since() -> None:
    live = _client_side_applied({"a": "1", "b": "2"})
    changed = {**live, "data": {"a": "5", "b": "2"}}
    writer = Manager("other", "Update", "v1")
    entries = track_update(live, changed, CONFIG_MAP, manager=writer, now=NOW)
    live = {**changed, "metadata": {**live["metadata"], "managedFields": entries}}

    with pytest.raises(Conflict) as refused:
        _apply(live, {"data": {"a": "9", "b": "3"}}, "kubectl")

    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "other" using v1: .data.a'


def test_and_no_other_manager_may() -> None:
    live = _client_side_applied({"a": "1"})

    with pytest.raises(Conflict):
        _apply(live, {"data": {"a": "9"}}, "alice")


@pytest.mark.parametrize("note", ["", "{", "[]", '{"apiVersion":"v2"}', '{"apiVersion":"v1","nope":1}'])
def test_a_note_that_makes_no_sense_allows_nothing(note: str) -> None:
    live = _client_side_applied({"a": "1"})
    live["metadata"]["annotations"][LAST_APPLIED] = note

    with pytest.raises(Conflict):
        _apply(live, {"data": {"a": "9"}}, "kubectl")


def test_a_note_that_would_be_too_long_is_dropped() -> None:
    live = _client_side_applied({"a": "1"})

    after = _apply(live, {"data": {"a": "x" * 300_000}}, "kubectl")

    assert LAST_APPLIED not in after["metadata"]["annotations"]
