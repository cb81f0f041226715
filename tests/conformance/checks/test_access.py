"""Authorization and admission: C69, C76, C77, C79."""

import json
import re

import pytest

from lamina.testing.waiting import eventually_sync
from tests.bed.kubectl import Kubectl
from tests.bed.scenarios import check
from tests.bed.server import Server
from tests.bed.wire import JSON_PATCH, Api
from tests.conformance.checks.objects import GROUP, config_map

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CONFIG_MAPS = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["configmaps"],
}


@check("C69", needs="authorisation")
def test_people_may_do_what_their_roles_say(
    server: Server, api: Api, kubectl: Kubectl, namespace: str, configmaps: str
) -> None:
    api.post(configmaps, config_map("there"))

    assert kubectl("auth", "can-i", "create", "deployments").strip() == "yes"
    cannot = kubectl.attempt("auth", "can-i", "get", "pods", "--as=nobody")
    assert (cannot.out.splitlines()[0], cannot.code) == ("no", 1)
    assert re.search(r"Username +nobody", kubectl("auth", "whoami", "--as=nobody"))
    refused = kubectl.attempt("get", "cm", "--as=nobody").err
    assert (
        'configmaps is forbidden: User "nobody" cannot list resource "configmaps" '
        f'in API group "" in the namespace "{namespace}"' in refused
    )

    kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    kubectl("create", "rolebinding", "reader", "--role=reader", "--user=somebody")
    eventually_sync(
        lambda: kubectl.attempt("get", "cm", "there", "--as=somebody", "-o", "name").out,
        lambda found: found == "configmap/there\n",
    )
    assert (
        'cannot delete resource "configmaps"' in kubectl.attempt("delete", "cm", "there", "--as=somebody").err
    )

    review = {
        "spec": {
            "user": "somebody",
            "resourceAttributes": {"namespace": namespace, "verb": "list", "resource": "configmaps"},
        }
    }
    assert (
        api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review).json["status"]["allowed"]
        is True
    )
    stranger = server.api_as("wrong").get(configmaps).json
    assert (stranger["code"], stranger["reason"], stranger["message"]) == (
        401,
        "Unauthorized",
        "Unauthorized",
    )


@check("C76")
def test_a_webhook_that_does_not_answer_fails_or_is_ignored_as_it_says(
    api: Api, kubectl: Kubectl, namespace: str, configmaps: str, request: pytest.FixtureRequest
) -> None:
    path = f"{ADMISSION}/validatingwebhookconfigurations"
    hook = {
        "name": f"dead.{GROUP}",
        "clientConfig": {"url": "https://127.0.0.1:9/x"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "timeoutSeconds": 1,
        "objectSelector": {"matchLabels": {"hooked": namespace}},
        "rules": [CONFIG_MAPS],
    }
    made = api.post(path, {"metadata": {"name": namespace}, "webhooks": [hook]})
    assert made.code == 201, made.text
    request.addfinalizer(lambda: api.delete(f"{path}/{namespace}"))

    def create(**labels: str) -> int:
        return api.post(f"{configmaps}?dryRun=All", config_map("h", labels)).code

    eventually_sync(lambda: create(hooked=namespace), lambda found: found == 500)
    refused = api.post(f"{configmaps}?dryRun=All", config_map("h", {"hooked": namespace})).json
    assert refused["reason"] == "InternalError"
    assert refused["message"].startswith(f'Internal error occurred: failed calling webhook "dead.{GROUP}"')
    assert create() == 201

    ignore = [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]
    api.patch(f"{path}/{namespace}", ignore, JSON_PATCH)
    eventually_sync(lambda: create(hooked=namespace), lambda found: found == 201)


@check("C77")
def test_a_policy_denies_what_its_expression_denies(
    api: Api, namespace: str, configmaps: str, request: pytest.FixtureRequest
) -> None:
    policies, bindings = (f"{ADMISSION}/validatingadmissionpolic{end}" for end in ("ies", "ybindings"))
    rule = {"expression": "!object.metadata.name.startsWith('denied-')", "message": "bad name"}
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {
        "matchConstraints": {"resourceRules": [CONFIG_MAPS], "namespaceSelector": here},
        "validations": [rule],
    }
    policy = api.post(policies, {"metadata": {"name": namespace}, "spec": spec})
    assert policy.code == 201, policy.text
    request.addfinalizer(lambda: api.delete(f"{policies}/{namespace}"))
    binding = {"policyName": namespace, "validationActions": ["Deny"]}
    bound = api.post(bindings, {"metadata": {"name": namespace}, "spec": binding})
    assert bound.code == 201, bound.text
    request.addfinalizer(lambda: api.delete(f"{bindings}/{namespace}"))

    def create(name: str) -> tuple[int, str]:
        answer = api.post(f"{configmaps}?dryRun=All", config_map(name))
        return answer.code, answer.json.get("message", "")

    code, message = eventually_sync(lambda: create("denied-x"), lambda answer: answer[0] != 201)
    assert code == 422
    assert re.search(
        rf"ValidatingAdmissionPolicy .*{namespace}.* with binding .*{namespace}.* denied request: bad name",
        message,
    )
    assert create("fine-x")[0] == 201


@check("C79", needs="service account tokens")
def test_a_service_account_token_says_who_it_is(server: Server, kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "serviceaccount", "p3")
    token = kubectl("create", "token", "p3").strip()
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

    answer = server.api_as(token).post(
        "/apis/authentication.k8s.io/v1/selfsubjectreviews", json.dumps(review)
    )

    user = answer.json["status"]["userInfo"]
    assert user["username"] == f"system:serviceaccount:{namespace}:p3"
    assert "system:serviceaccounts" in user["groups"]
