"""
The cost of validation rules and admission policies for a write: `python -m bench.rules`.

The server runs in this process with a store in memory, so that only its own work is
measured. The same object is written with and without three rules in its schema, with
a policy that matches it, and with one that does not.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from lamina.server.api.assembly import assemble
from lamina.server.api.authn import Authenticator
from lamina.server.api.dispatch import Api
from lamina.server.http.request import Request
from lamina.server.identity import ADMIN
from lamina.server.storage.memory_store import MemoryStore

GROUP = "bench.example.com"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
WRITES = 100


def definition(plural: str, *, rules: bool) -> dict[str, Any]:
    """Return a CRD, with three rules or with none."""
    fixed: dict[str, Any] = {"type": "string"}
    host = {"type": "string", "maxLength": 253}
    spec: dict[str, Any] = {
        "type": "object",
        "properties": {
            "min": {"type": "integer"},
            "max": {"type": "integer"},
            "fixed": fixed,
            "hosts": {"type": "array", "maxItems": 64, "items": host},
        },
    }
    if rules:
        fixed["x-kubernetes-validations"] = [{"rule": "self == oldSelf", "message": "is immutable"}]
        spec["x-kubernetes-validations"] = [
            {"rule": "self.min <= self.max", "message": "min must not exceed max"},
            {"rule": "!has(self.hosts) || self.hosts.all(h, h.endsWith('.example.com'))"},
        ]
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "kind": plural.capitalize()},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }


def policy(resource: str) -> dict[str, Any]:
    """Return a policy about changes to one resource."""
    rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": [resource]}
    checks = ["object.spec.min <= object.spec.max", "object.spec.fixed == oldObject.spec.fixed"]
    return {
        "metadata": {"name": resource},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": check} for check in checks],
        },
    }


async def call(api: Api, method: str, path: str, body: Any) -> Any:
    content = "application/merge-patch+json" if method == "PATCH" else "application/json"
    request = Request(method, path, "", {"content-type": content}, orjson.dumps(body), ADMIN)
    answer = await api.handle(request)
    assert answer.status < 300, answer.body
    return answer


async def write(api: Api, *plurals: str, rounds: int) -> list[float]:
    """
    Return the processor time of a write in microseconds, the least of several rounds.

    Kinds alternate, so that a slow moment of the machine affects all of them.
    """
    took = {plural: float("inf") for plural in plurals}
    for turn in range(rounds):
        for plural in plurals:
            began = time.process_time()
            for number in range(WRITES):
                change = {"spec": {"max": 10 + turn * WRITES + number}}
                await call(api, "PATCH", f"/apis/{GROUP}/v1/{plural}/a", change)
            took[plural] = min(took[plural], (time.process_time() - began) / WRITES * 1e6)
    return [took[plural] for plural in plurals]


async def bind(api: Api, resource: str) -> None:
    await call(api, "POST", f"{ADMISSION}/validatingadmissionpolicies", policy(resource))
    spec = {"policyName": resource, "validationActions": ["Deny"]}
    binding = {"metadata": {"name": resource}, "spec": spec}
    await call(api, "POST", f"{ADMISSION}/validatingadmissionpolicybindings", binding)


async def measure(rounds: int) -> list[tuple[str, float]]:
    """Return the operations and their times."""
    api = assemble(MemoryStore(), lambda: datetime.now(UTC), Authenticator({}), {})
    hosts = ["a.example.com", "b.example.com", "c.example.com"]
    for plural, rules in (("plains", False), ("ruleds", True)):
        crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        await call(api, "POST", crds, definition(plural, rules=rules))
        obj = {"apiVersion": f"{GROUP}/v1", "kind": plural.capitalize(), "metadata": {"name": "a"}}
        spec = {"min": 1, "max": 2, "fixed": "x", "hosts": hosts}
        await call(api, "POST", f"/apis/{GROUP}/v1/{plural}", {**obj, "spec": spec})
    await write(api, "plains", "ruleds", rounds=1)
    plain, ruled = await write(api, "plains", "ruleds", rounds=rounds)
    await bind(api, "configmaps")
    [other] = await write(api, "plains", rounds=rounds)
    await bind(api, "plains")
    [validated] = await write(api, "plains", rounds=rounds)
    return [
        ("without rules", plain),
        ("with three rules", ruled),
        ("with a policy that does not match", other),
        ("with a policy of two expressions", validated),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 0."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.rules", description="The cost of validation rules and admission policies."
    )
    parser.add_argument(
        "--rounds", type=int, default=10, metavar="N", help=f"rounds of {WRITES} writes each (default: 10)"
    )
    rows = asyncio.run(measure(parser.parse_args(arguments).rounds))
    for name, took in rows:
        print(f"{name:36} {took:7.0f} µs   {took / rows[0][1] - 1:+.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
