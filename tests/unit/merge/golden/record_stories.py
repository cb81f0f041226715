"""
Tells stories to a real server and writes down what becomes of them.

    python -m tests.unit.merge.golden.record_stories

Starts the real server of the test bed. Every story is one object that several
managers write at random, from a seed; each step is kept with what the server
answered: the object with its managedFields, or why it refused.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lamina.testing.waiting import eventually_sync
from tests.bed.either import start_server
from tests.bed.wire import APPLY, MERGE, Api
from tests.unit.merge.stories import thing_with

STORIES = Path(__file__).with_name("stories.jsonl")
VERSION = "golden.example.com/v1"
_PATH = "/apis/golden.example.com/v1/namespaces/default/things"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_ITEM = {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "string"}}}
_PORT = {
    "type": "object",
    "required": ["port", "protocol"],
    "properties": {
        "port": {"type": "integer"},
        "protocol": {"type": "string"},
        "name": {"type": "string"},
        "inner": _ITEM,
    },
}
SCHEMA = thing_with(
    ports={
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["port", "protocol"],
        "items": _PORT,
    },
    parts={
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {**_ITEM, "required": ["name"]},
    },
)
"""The schema of the stories: nothing in it has a default, so an object is what its writers made of it."""


def main() -> None:
    with start_server("real") as server:
        api = server.api()
        _define(api)
        with STORIES.open("w") as file:
            for seed in range(20):
                steps = list(_play(api, random.Random(seed), f"story-{seed}"))
                file.write(json.dumps(steps, separators=(",", ":")) + "\n")


def _define(api: Api) -> None:
    served = {**SCHEMA, "properties": {**SCHEMA["properties"], "metadata": {"type": "object"}}}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.golden.example.com"},
        "spec": {
            "group": "golden.example.com",
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": served},
                }
            ],
        },
    }
    answer = api.post(_CRDS, crd)
    assert answer.code == 201, answer.text
    probe = {"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": "probe"}, "spec": {"size": 1}}
    eventually_sync(
        lambda: api.patch(f"{_PATH}/probe?fieldManager=probe", probe, APPLY).code,
        lambda code: code in (200, 201),
    )


def _play(api: Api, chance: random.Random, name: str) -> Iterator[dict[str, Any]]:
    live: dict[str, Any] | None = None
    for _ in range(7):
        manager = chance.choice(["alice", "bob", "carol"])
        step: dict[str, Any] = {"manager": manager, "force": chance.random() < 0.5}
        stated: dict[str, Any] = {"apiVersion": VERSION, "kind": "Thing", "metadata": {"name": name}}
        if chance.random() < 0.3:
            stated["metadata"]["labels"] = {key: chance.choice("12") for key in chance.sample("xy", 1)}
        kind = "apply" if live is None else chance.choice(["apply", "apply", "put", "patch", "status"])
        if kind in ("apply", "patch"):
            stated["spec"] = _spec(chance)
        if kind == "apply":
            force = "true" if step["force"] else "false"
            answer = api.patch(f"{_PATH}/{name}?fieldManager={manager}&force={force}", stated, APPLY)
        elif kind == "patch":
            answer = api.patch(f"{_PATH}/{name}?fieldManager={manager}", stated, MERGE)
        elif kind == "put":
            stated = {**(live or {}), "spec": _spec(chance)}
            answer = api.put(f"{_PATH}/{name}?fieldManager={manager}", stated)
        else:
            stated = {**(live or {}), "status": {"ready": chance.randint(0, 1)}}
            answer = api.put(f"{_PATH}/{name}/status?fieldManager={manager}", stated)
        step |= {"kind": kind, "code": answer.code}
        if kind == "apply":
            step["stated"] = stated
        if answer.code >= 400:
            step |= {
                "message": answer.json["message"],
                "causes": answer.json.get("details", {}).get("causes", []),
            }
        else:
            live = answer.json
            step["answer"] = live
        yield step


def _spec(chance: random.Random) -> dict[str, Any]:
    possible: dict[str, Any] = {
        "size": chance.randint(0, 2),
        "color": chance.choice(["red", "blue", "a<b"]),
        "flag": chance.random() < 0.5,
        "tags": chance.sample("abc", chance.randint(0, 3)),
        "args": chance.sample("abc", chance.randint(0, 2)),
        "labels": {key: chance.choice("12") for key in chance.sample("xyz", chance.randint(0, 2))},
        "whole": {key: chance.randint(0, 1) for key in chance.sample("ab", chance.randint(1, 2))},
        "free": {
            key: chance.choice([1, "s", [1], {"p": True}])
            for key in chance.sample("xyz", chance.randint(0, 2))
        },
        "any": chance.choice([1, "s", [1], {"p": {"q": 1}}, {"p": {"r": 2}}]),
        "ports": [
            {"port": port, "protocol": chance.choice(["TCP", "UDP"]), **chance.choice([{}, {"name": "n"}])}
            for port in chance.sample([80, 81, 9], chance.randint(0, 3))
        ],
        "parts": [
            {"name": name, **chance.choice([{}, {"value": "1"}, {"value": "2"}])}
            for name in chance.sample("abc", chance.randint(0, 3))
        ],
    }
    return {key: value for key, value in possible.items() if chance.random() < 0.45}


if __name__ == "__main__":
    main()
