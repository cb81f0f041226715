"""
Asks a real server for its answers and writes them down.

    python -m tests.unit.server.builtin.golden.record --url URL --ca FILE --token TOKEN

Any cluster will do that serves Kubernetes 1.35 and lets the token do everything.
Objects are created for real, in a namespace of their own, and deleted again:
what a dry run answers has not been through the store.
"""

from __future__ import annotations

import argparse
import json
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.unit.server.builtin.golden.cases import NAMESPACE, Case, cases

ANSWERS = Path(__file__).with_name("answers.jsonl")


class Api:
    """A server, by its address, its authority and a token."""

    def __init__(self, url: str, ca: str, token: str) -> None:
        self._url, self._token = url.rstrip("/"), token
        self._context = ssl.create_default_context(cafile=ca)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the code and the object that a request is answered with."""
        request = urllib.request.Request(
            self._url + path,
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, context=self._context) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.loads(refusal.read())


def record(api: Api, case: Case) -> dict[str, Any]:
    """Return what the server made of one case."""
    place = f"{case.path}/{case.name}"
    api.call("DELETE", place)
    code, created = api.call("POST", case.path, case.body)
    if code != 201:
        raise SystemExit(f"{case.name}: {created.get('message')}")
    updates: list[dict[str, Any]] = []
    for endpoint, body in case.updates:
        before: dict[str, Any] = {}
        after: dict[str, Any] = {}
        code = 409
        while code == 409:
            # Controllers write, too; what counts is what the object was just before.
            _, before = api.call("GET", place)
            version = before["metadata"]["resourceVersion"]
            sent = {**body, "metadata": {**body["metadata"], "resourceVersion": version}}
            code, after = api.call("PUT", f"{place}/{endpoint}" if endpoint else place, sent)
        if code != 200:
            raise SystemExit(f"{case.name}/{endpoint}: {after.get('message')}")
        updates.append({"before": _trimmed(before), "after": _trimmed(after)})
    api.call("DELETE", place, {"gracePeriodSeconds": 0})
    return {"case": case.name, "created": _trimmed(created), "updates": updates}


def _trimmed(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what differs from one server to the next and is not the kind's business."""
    for name in ("managedFields", "resourceVersion"):
        obj["metadata"].pop(name, None)
    return obj


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("url", "ca", "token"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("names", nargs="*", help="only these cases; the answers to the others stay")
    asked = parser.parse_args()
    api = Api(asked.url, asked.ca, asked.token)
    api.call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    known = {}
    if ANSWERS.exists():
        known = {answer["case"]: answer for answer in map(json.loads, ANSWERS.read_text().splitlines())}
    wanted = [case for case in cases() if not asked.names or case.name in asked.names]
    known.update({case.name: record(api, case) for case in wanted})
    lines = [
        json.dumps(known[case.name], separators=(",", ":"), ensure_ascii=False)
        for case in cases()
        if case.name in known
    ]
    ANSWERS.write_text("\n".join(lines) + "\n")
    api.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
    print(f"{len(wanted)} cases recorded in {ANSWERS}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
