"""
Any invalid request is answered with a Status that says what is wrong with it, and nothing is stored.

Requests are made of pieces that make sense and pieces that do not, for every
kind and every verb; no combination of them is the server's fault.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lamina.server.api.assembly import assemble
from lamina.server.api.authn import Authenticator
from lamina.server.api.dispatch import Api
from lamina.server.http.request import Request, Response
from lamina.server.identity import ADMIN
from lamina.server.storage.memory_store import MemoryStore

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "things.ex.example.com"},
    "spec": {
        "group": "ex.example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.n", "statusReplicasPath": ".status.n"},
                },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "n": {"type": "integer", "minimum": 0},
                                    "list": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["k"],
                                        "items": {
                                            "type": "object",
                                            "required": ["k"],
                                            "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
                                        },
                                    },
                                    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}

_A_REAL_ONES = (b"resourceVersion should not be set", b"target.name: Required value")
"""What a real server calls its own fault, too."""


class Fixture:
    """A server in memory, asked without HTTP."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self._fill())

    async def _fill(self) -> None:
        self.store = MemoryStore()
        self.api: Api = assemble(self.store, lambda: datetime.now(UTC), Authenticator({}), {})
        await self._made("/api/v1/namespaces", {"metadata": {"name": "d"}})
        await self._made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
        await self._made("/api/v1/namespaces/d/configmaps", {"metadata": {"name": "x"}, "data": {"a": "b"}})
        thing = {
            "apiVersion": "ex.example.com/v1",
            "kind": "Thing",
            "metadata": {"name": "x"},
            "spec": {"n": 1},
        }
        await self._made("/apis/ex.example.com/v1/namespaces/d/things", thing)

    async def _made(self, path: str, obj: Any) -> None:
        answer = await self._ask(Request("POST", path, "", {}, orjson.dumps(obj), ADMIN))
        assert answer.status == 201, answer.body

    async def _ask(self, request: Request) -> Response:
        answer = await self.api.handle(request)
        if not isinstance(answer.body, bytes):
            await answer.body.aclose()  # type: ignore[attr-defined]
        return answer

    def ask(self, method: str, path: str, query: str, content_type: str, body: bytes) -> Response:
        headers = {"content-type": content_type} if content_type else {}
        return self.loop.run_until_complete(self._ask(Request(method, path, query, headers, body, ADMIN)))


@pytest.fixture(scope="module")
def server() -> Any:
    made = Fixture()
    yield made
    made.loop.run_until_complete(made.store.close())
    made.loop.close()


WORDS = st.sampled_from(
    ["metadata", "name", "namespace", "labels", "annotations", "ownerReferences", "finalizers", "managedFields", "uid",
     "resourceVersion", "generateName", "creationTimestamp", "deletionTimestamp", "spec", "status", "data", "binaryData",
     "stringData", "type", "template", "containers", "image", "selector", "matchLabels", "matchExpressions", "replicas",
     "ports", "port", "rules", "roleRef", "subjects", "kind", "apiVersion", "group", "versions", "names", "plural",
     "schema", "openAPIV3Schema", "properties", "items", "list", "k", "v", "any", "n", "webhooks", "involvedObject",
     "x", "", "ünï", "a.b/c", "$patch", "$setElementOrder/containers", "$retainKeys"]
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**65), 2**65), st.floats(), WORDS, st.text(max_size=8),
    st.sampled_from(["1", "0.5", "100Mi", "2026-01-01T00:00:00Z", "http://x", "v1", "apps/v1", "ConfigMap", "Thing", "d"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
KINDS = (
    "/api/v1/namespaces/d/configmaps", "/api/v1/namespaces/d/secrets", "/api/v1/namespaces", "/api/v1/namespaces/d/pods",
    "/api/v1/namespaces/d/services", "/api/v1/namespaces/d/events", "/api/v1/nodes", "/api/v1/persistentvolumes",
    "/api/v1/namespaces/d/persistentvolumeclaims", "/api/v1/namespaces/d/serviceaccounts",
    "/api/v1/namespaces/d/resourcequotas", "/api/v1/namespaces/d/limitranges", "/api/v1/namespaces/d/endpoints",
    "/apis/apps/v1/namespaces/d/deployments", "/apis/apps/v1/namespaces/d/statefulsets",
    "/apis/apps/v1/namespaces/d/controllerrevisions", "/apis/batch/v1/namespaces/d/jobs",
    "/apis/batch/v1/namespaces/d/cronjobs", "/apis/coordination.k8s.io/v1/namespaces/d/leases",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/rbac.authorization.k8s.io/v1/namespaces/d/rolebindings",
    "/apis/networking.k8s.io/v1/namespaces/d/ingresses", "/apis/networking.k8s.io/v1/namespaces/d/networkpolicies",
    "/apis/policy/v1/namespaces/d/poddisruptionbudgets", "/apis/autoscaling/v1/namespaces/d/horizontalpodautoscalers",
    "/apis/autoscaling/v2/namespaces/d/horizontalpodautoscalers", "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/scheduling.k8s.io/v1/priorityclasses", "/apis/discovery.k8s.io/v1/namespaces/d/endpointslices",
    "/apis/events.k8s.io/v1/namespaces/d/events", "/apis/certificates.k8s.io/v1/certificatesigningrequests",
    "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/ex.example.com/v1/namespaces/d/things", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    "/apis/authentication.k8s.io/v1/tokenreviews",
)  # fmt: skip
CONTENT_TYPES = (
    "application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "application/json-patch+json",
    "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml", "text/plain", "",
)  # fmt: skip
QUERIES = st.lists(
    st.tuples(
        st.sampled_from(
            ["dryRun", "fieldValidation", "fieldManager", "force", "limit", "continue", "resourceVersion",
             "resourceVersionMatch", "watch", "timeoutSeconds", "labelSelector", "fieldSelector", "propagationPolicy",
             "gracePeriodSeconds", "sendInitialEvents", "allowWatchBookmarks", "pretty", "includeObject"]
        ),
        st.sampled_from(
            ["All", "Strict", "Ignore", "m", "true", "false", "0", "1", "-1", "99999999999999999999", "x", "", "a=b", "a in (",
             "metadata.name=x", "spec.n=1", "Exact", "NotOlderThan", "Orphan", "Foreground", "%00", "eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ"]
        ),
    ),
    max_size=3,
)  # fmt: skip


def body_of(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, orjson.JSONEncodeError):
        import json

        return json.dumps(value).encode("utf-8", "surrogatepass")


@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
    kind=st.sampled_from(KINDS),
    below=st.sampled_from(["", "/x", "/x/status", "/x/scale", "/x/finalize", "/x/nope", "/x/eviction", "/x/binding", "/%ff"]),
    query=QUERIES,
    content_type=st.sampled_from(CONTENT_TYPES),
    body=st.one_of(
        VALUES.map(body_of),
        st.dictionaries(WORDS, VALUES, max_size=5).map(lambda obj: body_of({"metadata": {"name": "x"}, **obj})),
        st.dictionaries(WORDS, VALUES, max_size=5).map(
            lambda obj: body_of({"apiVersion": "ex.example.com/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": obj})
        ),
        st.lists(
            st.fixed_dictionaries(
                {"op": st.sampled_from(["add", "remove", "replace", "test", "copy", "move", "x"])},
                optional={"path": st.sampled_from(["/data", "/data/a", "/metadata/labels/x", "/spec/n", "", "x", "/-"]), "value": VALUES,
                          "from": st.sampled_from(["/data", "/metadata", ""])},
            ),
            max_size=3,
        ).map(body_of),
        st.binary(max_size=40),
        st.binary(max_size=40).map(lambda noise: b"k8s\0" + noise),
    ),
)  # fmt: skip
def test_no_request_is_the_servers_fault_and_a_refused_one_stores_nothing(
    server: Fixture,
    method: str,
    kind: str,
    below: str,
    query: list[tuple[str, str]],
    content_type: str,
    body: bytes,
) -> None:
    before = server.store.version

    answer = server.ask(
        method, kind + below, "&".join(f"{name}={value}" for name, value in query), content_type, body
    )

    if answer.status >= 400:
        assert server.store.version == before
        assert isinstance(answer.body, bytes)
        status = orjson.loads(answer.body)
        assert status["kind"] == "Status" and status["message"] and status["code"] == answer.status
    known = answer.status == 500 and any(words in bytes(answer.body) for words in _A_REAL_ONES)  # type: ignore[arg-type]
    assert answer.status < 500 or answer.status == 504 or known, answer.body
