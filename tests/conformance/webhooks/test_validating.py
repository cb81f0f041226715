"""Validating webhooks: which are called, with what, and the effect of a denial."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lamina.testing.waiting import eventually_sync
from tests.bed.fixtures import chosen_server
from tests.bed.wire import MERGE, Answer, Api
from tests.conformance.webhooks.conftest import Webhook

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
TIMEOUT = 60.0
ALLOWED = {"allowed": True}
Register = Callable[..., str]


@pytest.fixture
def register(api: Api, namespace: str, webhook: Webhook) -> Iterator[Register]:
    """Register a webhook for the configmaps of the test's namespace, and wait until it is called."""
    name = f"hooks-{namespace}"

    def register(**fields: Any) -> str:
        made = {
            "name": "check.example.com",
            "clientConfig": {"url": webhook.url, "caBundle": webhook.bundle},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 10,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE", "DELETE"],
                    "resources": ["configmaps"],
                }
            ],
            **fields,
        }
        answer = api.post(HOOKS, {"metadata": {"name": name}, "webhooks": [made]})
        assert answer.code == 201, answer.text
        return name

    yield register
    api.delete(f"{HOOKS}/{name}")


def config_map(namespace: str, name: str = "", **metadata: Any) -> tuple[str, dict[str, Any]]:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    return (path, {"metadata": {"name": name, **metadata}}) if name else (path, {})


def in_force(api: Api, namespace: str, webhook: Webhook) -> None:
    """Wait until the webhook is called for a configmap, and forget those calls."""

    def asked() -> bool:
        path, body = config_map(namespace, "probe")
        api.post(f"{path}?dryRun=All", body)
        return bool(webhook.asked)

    eventually_sync(asked)
    webhook.asked.clear()
    webhook.paths.clear()


def said(answer: Answer) -> tuple[int, str, str]:
    status = answer.json
    return answer.code, status.get("reason", ""), status.get("message", "")


def test_a_webhook_is_told_everything_about_a_write(
    api: Api, namespace: str, webhook: Webhook, register: Register
) -> None:
    register()
    in_force(api, namespace, webhook)
    path, body = config_map(namespace, "a")

    made = api.post(f"{path}?fieldManager=me", {**body, "data": {"k": "1"}})
    changed = api.patch(f"{path}/a", {"data": {"k": "2"}}, content=MERGE)
    gone = api.delete(f"{path}/a")

    assert (made.code, changed.code, gone.code) == (201, 200, 200)
    creation, change, deletion = webhook.asked
    assert {key: value for key, value in creation.items() if key not in ("uid", "object", "userInfo")} == {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "a",
        "namespace": namespace,
        "operation": "CREATE",
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"},
    }
    assert creation["object"]["data"] == {"k": "1"}
    assert creation["object"]["metadata"]["uid"] == made.json["metadata"]["uid"]
    assert creation["object"]["kind"] == "ConfigMap"
    assert creation["userInfo"]["username"]
    assert (change["operation"], change["oldObject"]["data"], change["object"]["data"]) == (
        "UPDATE",
        {"k": "1"},
        {"k": "2"},
    )
    assert (deletion["operation"], deletion["object"], deletion["oldObject"]["data"]) == (
        "DELETE",
        None,
        {"k": "2"},
    )
    assert webhook.paths == ["/check?timeout=10s"] * 3
    assert len({one["uid"] for one in webhook.asked}) == 3


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (
            {"allowed": False},
            (400, "", 'admission webhook "check.example.com" denied the request without explanation'),
        ),
        (
            {"allowed": False, "status": {"message": "not today"}},
            (400, "", 'admission webhook "check.example.com" denied the request: not today'),
        ),
        (
            {"allowed": False, "status": {"code": 403, "message": "not today", "reason": "Forbidden"}},
            (403, "Forbidden", 'admission webhook "check.example.com" denied the request: not today'),
        ),
        (
            {"allowed": False, "status": {"code": 418, "reason": "Teapot"}},
            (418, "Teapot", 'admission webhook "check.example.com" denied the request: Teapot'),
        ),
        (
            {"allowed": False, "status": {"code": 200, "message": "fine"}},
            (400, "", 'admission webhook "check.example.com" denied the request: fine'),
        ),
    ],
)
def test_a_refusal_is_told_in_the_words_of_the_webhook(
    api: Api,
    namespace: str,
    webhook: Webhook,
    register: Register,
    response: dict[str, Any],
    expected: tuple[int, str, str],
) -> None:
    register()
    in_force(api, namespace, webhook)
    webhook.answer = lambda request: response
    path, body = config_map(namespace, "a")

    refused = api.post(path, body)

    assert said(refused) == expected
    assert api.get(f"{path}/a").code == 404


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"{}", "webhook response was absent"),
        (
            b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}',
            "webhook response was absent",
        ),
        (
            b'{"kind": "Nonsense", "apiVersion": "example.com/v1", "response": {"uid": "x"}}',
            'failed to call webhook: no kind "Nonsense" is registered for version "example.com/v1" in scheme',
        ),
        (
            b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1", "response": {"uid": "x"}}',
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        ),
        (
            b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": {"uid": "x"}}',
            'got "x"',
        ),
    ],
)
def test_an_answer_that_is_none_is_a_failure_to_ask(
    api: Api, namespace: str, webhook: Webhook, register: Register, answer: bytes, why: str
) -> None:
    register()
    in_force(api, namespace, webhook)
    webhook.answer = lambda request: answer
    path, body = config_map(namespace, "a")

    code, reason, message = said(api.post(path, body))

    assert (code, reason) == (500, "InternalError")
    assert message.startswith('Internal error occurred: failed calling webhook "check.example.com": ')
    assert why in message


def test_a_webhook_that_is_not_there_stops_writes_unless_it_is_to_be_ignored(
    api: Api, namespace: str, register: Register
) -> None:
    name = register(
        clientConfig={"url": "https://127.0.0.1:9/x"},
        timeoutSeconds=1,
        objectSelector={"matchLabels": {"mind": "yes"}},
    )
    path, body = config_map(namespace, "a", labels={"mind": "yes"})
    eventually_sync(lambda: api.post(f"{path}?dryRun=All", body).code != 201)

    refused = api.post(path, body)
    assert said(refused) == (
        500,
        "InternalError",
        'Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: '
        'Post "https://127.0.0.1:9/x?timeout=1s": dial tcp 127.0.0.1:9: connect: connection refused',
    )
    assert api.post(path, config_map(namespace, "other")[1]).code == 201

    forgiving = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
    api.patch(f"{HOOKS}/{name}", forgiving, content="application/json-patch+json")
    eventually_sync(lambda: api.post(f"{path}?dryRun=All", body).code == 201)

    assert api.post(path, body).code == 201


def test_a_certificate_of_an_untrusted_authority_is_refused(
    api: Api, namespace: str, webhook: Webhook, register: Register
) -> None:
    register(clientConfig={"url": webhook.url})
    path, body = config_map(namespace, "a")
    eventually_sync(lambda: api.post(f"{path}?dryRun=All", body).code != 201)

    code, _, message = said(api.post(path, body))

    assert code == 500
    assert "failed to verify certificate" in message
    assert not webhook.asked


def test_what_a_webhook_warns_of_is_handed_on(
    api: Api, namespace: str, webhook: Webhook, register: Register
) -> None:
    register()
    in_force(api, namespace, webhook)
    webhook.answer = lambda request: {**ALLOWED, "warnings": ["mind the gap"]}
    path, body = config_map(namespace, "a")

    answer = api.post(path, body)

    assert answer.code == 201
    assert answer.warnings == ('299 - "mind the gap"',)


def test_a_rehearsal_is_announced_as_one(
    api: Api, namespace: str, webhook: Webhook, register: Register
) -> None:
    register()
    in_force(api, namespace, webhook)
    path, body = config_map(namespace, "a")

    api.post(f"{path}?dryRun=All", body)

    assert webhook.asked[-1]["dryRun"] is True
    assert webhook.asked[-1]["options"]["dryRun"] == ["All"]


def test_conditions_say_what_a_webhook_is_not_asked_about(
    api: Api, namespace: str, webhook: Webhook, register: Register
) -> None:
    register(matchConditions=[{"name": "odd", "expression": "!object.metadata.name.startsWith('quiet')"}])
    in_force(api, namespace, webhook)

    for name in ("quiet-one", "loud"):
        path, body = config_map(namespace, name)
        assert api.post(path, body).code == 201

    assert [one["name"] for one in webhook.asked] == ["loud"]


def test_a_write_during_a_webhook_call_is_not_lost(
    api: Api, namespace: str, webhook: Webhook, register: Register
) -> None:
    """A patch without a version is computed again if the object changes while a webhook is called."""
    path, body = config_map(namespace, "a")
    assert api.post(path, {**body, "data": {"mine": "1"}}).code == 201
    register(objectSelector={"matchLabels": {"slow": "yes"}})

    def asked() -> bool:
        probe = config_map(namespace, "probe", labels={"slow": "yes"})[1]
        api.post(f"{path}?dryRun=All", probe)
        return bool(webhook.asked)

    eventually_sync(asked)
    webhook.asked.clear()

    def interrupted(request: dict[str, Any]) -> dict[str, Any]:
        if len(webhook.asked) == 1:
            assert api.patch(f"{path}/a", {"data": {"theirs": "2"}}, content=MERGE).code == 200
        return ALLOWED

    webhook.answer = interrupted
    changed = api.patch(
        f"{path}/a", {"metadata": {"labels": {"slow": "yes"}}, "data": {"mine": "3"}}, content=MERGE
    )

    assert changed.code == 200, changed.text
    assert changed.json["data"] == {"mine": "3", "theirs": "2"}


def test_an_update_with_a_version_loses_against_a_faster_write(
    api: Api, namespace: str, webhook: Webhook, register: Register
) -> None:
    path, body = config_map(namespace, "a")
    made = api.post(path, body).json
    register(objectSelector={"matchLabels": {"slow": "yes"}})
    eventually_sync(
        lambda: bool(
            api.post(f"{path}?dryRun=All", config_map(namespace, "p", labels={"slow": "yes"})[1])
            and webhook.asked
        )
    )
    webhook.asked.clear()

    def interrupted(request: dict[str, Any]) -> dict[str, Any]:
        if len(webhook.asked) == 1:
            assert api.patch(f"{path}/a", {"data": {"theirs": "2"}}, content=MERGE).code == 200
        return ALLOWED

    webhook.answer = interrupted
    made["metadata"]["labels"] = {"slow": "yes"}
    refused = api.put(f"{path}/a", made)

    assert said(refused) == (
        409,
        "Conflict",
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
        "please apply your changes to the latest version and try again",
    )


def test_a_collection_is_deleted_completely_during_other_writes(
    api: Api, namespace: str, webhook: Webhook, register: Register
) -> None:
    path, _ = config_map(namespace)
    for name in ("a", "b"):
        assert api.post(path, config_map(namespace, name, labels={"going": "yes"})[1]).code == 201
    register(objectSelector={"matchLabels": {"going": "yes"}})
    probe = config_map(namespace, "probe", labels={"going": "yes"})[1]
    eventually_sync(lambda: bool(api.post(f"{path}?dryRun=All", probe) and webhook.asked))
    webhook.asked.clear()

    def interrupted(request: dict[str, Any]) -> dict[str, Any]:
        if len(webhook.asked) == 1 and request["operation"] == "DELETE":
            webhook.answer = lambda request: ALLOWED
            changed = api.patch(
                f"{path}/{request['oldObject']['metadata']['name']}", {"data": {"k": "1"}}, content=MERGE
            )
            assert changed.code == 200
        return ALLOWED

    webhook.answer = interrupted
    gone = api.delete(f"{path}?labelSelector=going%3Dyes")

    assert gone.code == 200, gone.text
    assert api.get(f"{path}?labelSelector=going%3Dyes").json["items"] == []


def test_a_service_with_a_name_elsewhere_leads_there(
    api: Api, namespace: str, webhook: Webhook, register: Register
) -> None:
    services = f"/api/v1/namespaces/{namespace}/services"
    spec = {"type": "ExternalName", "externalName": "localhost"}
    assert api.post(services, {"metadata": {"name": "hook"}, "spec": spec}).code == 201
    service = {"namespace": namespace, "name": "hook", "port": webhook.port, "path": "/check"}
    register(clientConfig={"service": service, "caBundle": webhook.bundle})
    path, body = config_map(namespace, "a")
    eventually_sync(lambda: api.post(f"{path}?dryRun=All", body).code != 201)

    # Its certificate is valid for a service with another name.
    message = said(api.post(path, body))[2]

    assert "failed to verify certificate" in message
    assert f"hook.{namespace}.svc" in message


if chosen_server() == "embedded":
    # Without a cluster network the real server cannot reach a service.

    def test_nothing_is_made_in_a_namespace_that_ended_while_a_webhook_was_asked(
        api: Api, namespace: str, webhook: Webhook, register: Register
    ) -> None:
        register()
        in_force(api, namespace, webhook)
        path, body = config_map(namespace, "late")

        def ended(request: dict[str, Any]) -> dict[str, Any]:
            if request["name"] == "late":
                api.delete(f"/api/v1/namespaces/{namespace}")
                eventually_sync(lambda: api.get(f"/api/v1/namespaces/{namespace}").code == 404)
            return ALLOWED

        webhook.answer = ended

        assert said(api.post(path, body))[:2] == (404, "NotFound")

    def test_a_service_that_is_not_there_is_named(api: Api, namespace: str, register: Register) -> None:
        register(clientConfig={"service": {"namespace": namespace, "name": "gone"}})
        path, body = config_map(namespace, "a")

        assert said(api.post(path, body)) == (
            500,
            "InternalError",
            'Internal error occurred: failed calling webhook "check.example.com": failed to call webhook: '
            'service "gone" not found',
        )


def test_webhooks_are_not_called_about_webhook_configurations(
    api: Api, namespace: str, webhook: Webhook, register: Register
) -> None:
    """Otherwise a wrong configuration could not be removed."""
    name = register(
        namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        rules=[
            {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]},
        ],
    )
    in_force(api, namespace, webhook)
    webhook.answer = lambda request: {"allowed": False}

    assert api.delete(f"{HOOKS}/{name}").code == 200
    assert json.dumps(webhook.asked).count("webhookconfigurations") == 0
