"""Writes that are judged before they are stored: by `lamina up`, in its own process, and by `lamina run`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lamina.admission.registration import WebhookEndpoint, configurations, webhook_endpoint
from lamina.cli.options.webhook_flags import bind_address
from lamina.errors import SettingsError
from lamina.families.manifestwork.admission import checks
from lamina.testing.waiting import eventually_sync
from tests.bed.wire import Api
from tests.cli.conftest import Lamina
from tests.cli.test_up_and_down import api_of
from tests.scenarios.story import free_port

WORKS = "/apis/work.open-cluster-management.io/v1/namespaces/default/manifestworks"
REGISTERED = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/lamina-manifestwork"
DENIED = 'admission webhook "manifests.work.open-cluster-management.io" denied the request: '


def work(name: str, *manifests: dict[str, Any]) -> dict[str, Any]:
    kind = {"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork"}
    return {**kind, "metadata": {"name": name}, "spec": {"workload": {"manifests": list(manifests)}}}


def running(lamina: Lamina) -> Api:
    (found,) = json.loads(lamina("status", "-o", "json").stdout)
    return api_of(Path(found["kubeconfig"]), lamina.home)


def test_up_judges_writes_itself_and_leaves_nothing_in_the_way_of_a_start_without(lamina: Lamina) -> None:
    lamina("up", "--detach", "--port", "0")
    api = running(lamina)
    refused = api.post(WORKS, work("nothing"))
    assert (refused.code, refused.json["message"]) == (400, f"{DENIED}Workload manifests should not be empty")
    urls = [one["clientConfig"]["url"] for one in api.get(REGISTERED).json["webhooks"]]
    assert all(url.startswith("https://127.0.0.1:") for url in urls)
    lamina("down")

    lamina("up", "--detach", "--port", "0", "--families", "metacontroller")
    assert running(lamina).post(WORKS, work("nothing")).code == 201


def test_run_is_asked_at_a_url_and_keeps_its_authority(lamina: Lamina) -> None:
    lamina("up", "--detach", "--ephemeral", "--port", "0", "--families", "none")
    api, port = running(lamina), free_port()
    url = f"https://127.0.0.1:{port}"
    process = lamina.start(
        "run", "--families", "manifestwork", "--webhook-url", url, "--manifest-limit", "200", "--log", "error"
    )
    assert process.stderr is not None
    try:
        assert "lamina runs manifestwork on https://" in process.stderr.readline()
        kind = {"apiVersion": "v1", "kind": "ConfigMap"}
        big = work("big", {**kind, "metadata": {"name": "a"}, "data": {"text": "x" * 200}})
        refused = eventually_sync(lambda: api.post(WORKS, big), lambda answer: answer.code != 404)
        assert refused.code == 400
        assert refused.json["message"].endswith("bytes which exceeds the 200 limit")
        assert api.post(WORKS, work("small", {**kind, "metadata": {"name": "a"}})).code == 201
        assert set(api.get("/api/v1/namespaces/default/secrets/lamina-webhook").json["data"]) == {
            "ca.crt",
            "ca.key",
        }
    finally:
        process.terminate()
        assert process.wait(timeout=120) == 0
        process.stderr.close()
    assert api.post(WORKS, big).code == 201


def test_a_review_is_not_delayed_by_a_limit_of_requests(lamina: Lamina) -> None:
    """The rate limit of requests is exhausted, and the SubjectAccessReview is sent all the same."""
    lamina("up", "--detach", "--ephemeral", "--port", "0", "--families", "none")
    api, url = running(lamina), f"https://127.0.0.1:{free_port()}"
    process = lamina.start(
        "run", "--families", "manifestwork", "--webhook-url", url, "--no-leader-election", "--log", "error",
        "--client-go-qps", "0.01", "--client-go-burst", "60",
    )  # fmt: skip
    assert process.stderr is not None
    try:
        assert "lamina runs manifestwork on https://" in process.stderr.readline()
        account = {"type": "ServiceAccount", "serviceAccount": {"namespace": "ops", "name": "robot"}}
        for number in range(70):
            made = work(f"w{number}", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
            made["spec"]["executor"] = {"subject": account}
            answer = api.post(WORKS, made)
            assert answer.code == 201, answer.json
    finally:
        process.terminate()
        assert process.wait(timeout=120) == 0
        process.stderr.close()


@pytest.mark.parametrize(
    ("options", "because"),
    [
        (["--webhook-url", "https://a", "--webhook-service", "a/b"], "a webhook has a URL or a service"),
        (["--webhook-url", "http://a"],                              "'http://a' is no webhook URL"),
        (["--webhook-service", "lamina"],                            "'lamina' is no service"),
        (["--webhook-service", "a/b:x"],                             "'a/b:x' is no service"),
        (["--webhook-bind-address", ":1"],                           "needs an address for the API server"),
        (["--webhook-url", "https://a", "--families", "metacontroller"], "none of the selected families validates writes"),
        (["--webhook-url", "https://a", "--webhook-bind-address", "0"],  "expected an address, got 0"),
    ],
)  # fmt: skip
def test_options_that_lead_nowhere_are_refused(lamina: Lamina, options: list[str], because: str) -> None:
    kubeconfig = lamina.home / "kubeconfig"
    kubeconfig.write_text(
        "{clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}], contexts: [{name: a, context: {cluster: a}}],"
        " current-context: a}"
    )

    assert because in lamina("run", "--kubeconfig", str(kubeconfig), *options, code=1).stderr


def test_it_listens_where_the_way_leads() -> None:
    def listens(url: str, service: str = "", said: str = "") -> tuple[str, int]:
        found = webhook_endpoint(url, service)
        assert found is not None
        return bind_address(found, said)

    assert listens("https://127.0.0.1:9000") == ("127.0.0.1", 9000)
    assert listens("https://hub.example.com") == ("", 443)
    assert listens("", "lamina-system/lamina") == ("", 9443)
    assert listens("", "lamina-system/lamina", "10.0.0.7:80") == ("10.0.0.7", 80)
    assert webhook_endpoint("", "") is None
    with pytest.raises(SettingsError):
        webhook_endpoint("https://a?b", "")


@pytest.mark.parametrize("url", ["https://10.0.0.7:99999", "https://[::1", "https://a:b", "https://a:0"])
def test_an_address_that_is_none_is_refused_in_words(url: str) -> None:
    with pytest.raises(SettingsError, match="is no webhook URL"):
        webhook_endpoint(url, "")


def test_a_service_is_registered_with_its_port_and_the_certificate_is_for_its_name() -> None:
    found = webhook_endpoint("", "lamina-system/lamina:8443")
    assert found is not None and found.host == "lamina.lamina-system.svc"

    (registered,) = configurations(
        checks(), WebhookEndpoint(namespace="n", name="s", port=8443, authority=b"pem")
    )
    first = registered["webhooks"][0]
    assert first["clientConfig"] == {
        "service": {"namespace": "n", "name": "s", "port": 8443, "path": "/manifestwork/manifests"},
        "caBundle": "cGVt",
    }
    assert [(one["failurePolicy"], bool(one.get("matchConditions"))) for one in registered["webhooks"]] == [
        ("Ignore", True),
        ("Fail", True),
        ("Ignore", False),
    ]


def test_a_server_elsewhere_is_spared_what_we_write_ourselves() -> None:
    def conditions(way: WebhookEndpoint) -> list[str]:
        (registered,) = configurations(checks(), way)
        return [one["name"] for one in registered["webhooks"][0].get("matchConditions", ())]

    assert conditions(WebhookEndpoint(url="https://a")) == ["spec-changes"]
    assert conditions(WebhookEndpoint(url="https://a", user='a "b"')) == ["spec-changes", "is-not-ours"]
    assert conditions(WebhookEndpoint(url="https://a", user="a", apart=False)) == []


def test_checks_are_registered_in_the_configuration_that_they_name() -> None:
    ours = checks()
    theirs = tuple(replace(one, name=f"{one.name}.theirs", configuration="theirs") for one in ours[:1])

    registered = configurations((*ours, *theirs), WebhookEndpoint(url="https://a"))

    assert [(one["metadata"]["name"], [each["name"] for each in one["webhooks"]]) for one in registered] == [
        ("lamina-manifestwork", [one.name for one in ours]),
        ("theirs", [one.name for one in theirs]),
    ]
    assert configurations((), WebhookEndpoint()) == ()
