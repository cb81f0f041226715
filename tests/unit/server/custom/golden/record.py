"""
Asks a real server for its answers and writes them down.

    python -m tests.unit.server.custom.golden.record

starts one (see `tests/bed`), plays every case to it, and leaves the answers in
definitions.jsonl and objects.jsonl beside this file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lamina.testing.waiting import eventually_sync
from tests.bed.real import real_server
from tests.bed.wire import Answer, Api
from tests.unit.server.custom.golden import definitions, objects
from tests.unit.server.custom.golden.definitions import GROUP, Made
from tests.unit.server.custom.golden.ours import causes_of

HERE = Path(__file__).parent
DEFINITIONS = HERE / "definitions.jsonl"
OBJECTS = HERE / "objects.jsonl"

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_MOMENTARY = ("managedFields", "resourceVersion", "uid", "creationTimestamp")


def main() -> None:
    """Record everything."""
    with real_server() as server:
        api = Api(server.url, str(server.ca_file), server.token)
        DEFINITIONS.write_text(_lines(_of_definitions(api)))
        OBJECTS.write_text(_lines(_of_objects(api)))


def _lines(answers: Iterator[Made]) -> str:
    return "".join(json.dumps(answer, ensure_ascii=False) + "\n" for answer in answers)


def _of_definitions(api: Api) -> Iterator[Made]:
    for name, body in definitions.cases():
        answer = api.post(f"{_CRDS}?dryRun=All", body)
        yield {"case": name, **_kept(answer)}


def _of_objects(api: Api) -> Iterator[Made]:
    installed: dict[str, str] = {}

    def install(name: str) -> None:
        plural = objects.DEFINITIONS[name]["spec"]["names"]["plural"]
        if installed.get(plural) != name:
            _install(api, objects.DEFINITIONS[name])
            installed[plural] = name

    for case in objects.cases():
        install(case.definition)
        plural = objects.DEFINITIONS[case.definition]["spec"]["names"]["plural"]
        place = f"/apis/{GROUP}/{case.version}/namespaces/default/{plural}"
        if case.before is None:
            answer = api.post(f"{place}?dryRun=All", case.body)
        else:
            created = _until_created(api, place, case.before)
            if case.then:
                install(case.then)
            version = created["metadata"]["resourceVersion"]
            body = {**case.body, "metadata": {**case.body["metadata"], "resourceVersion": version}}
            answer = api.put(f"{place}/x/{case.subresource}?dryRun=All".replace("/?", "?"), body)
            api.delete(f"{place}/x")
        yield {"case": case.name, **_kept(answer, case.body)}


def _until_created(api: Api, place: str, body: Made) -> Made:
    """Create an object; a definition that was just changed may need a moment to be served as it is now."""
    answer = eventually_sync(
        lambda: api.post(place, body), lambda answer: answer.code == 201, seconds=10, interval=0.1
    )
    created: Made = answer.json
    return created


def _install(api: Api, crd: Made) -> None:
    name, spec = crd["metadata"]["name"], crd["spec"]
    current = api.get(f"{_CRDS}/{name}")
    if current.code == 200:
        version = current.json["metadata"]["resourceVersion"]
        body = {**crd, "metadata": {**crd["metadata"], "resourceVersion": version}}
        answer = api.put(f"{_CRDS}/{name}", body)
    else:
        answer = api.post(_CRDS, crd)
    if answer.code not in (200, 201):
        raise SystemExit(f"{name}: {answer.text}")
    # Handlers of a changed definition are replaced a moment after the write.
    time.sleep(0.1 if current.code != 200 else 0.5)
    served = f"/apis/{GROUP}/v1/{spec['names']['plural']}"
    eventually_sync(lambda: api.get(served).code == 200, seconds=50, interval=0.1)


def _kept(answer: Answer, written: Made | None = None) -> Made:
    """Return what is compared of an answer: what is not as it was written, or what was wrong with it."""
    body = answer.json
    if answer.code >= 400:
        kept: Made = {"code": answer.code}
        if answer.code == 422:
            kept["causes"] = causes_of(body)
        else:
            kept["message"] = body["message"]
        return kept
    kept = {"code": answer.code}
    if warnings := sorted(map(_unquoted, answer.warnings)):
        kept["warnings"] = warnings
    if written is not None and (different := difference(body, written)):
        kept["different"] = different
    return kept


def _unquoted(header: str) -> str:
    return header.partition(" - ")[2][1:-1].replace('\\"', '"').replace("\\\\", "\\")


def difference(obj: Made, written: Made) -> Made:
    """Return the parts of an object that are not as they were written; what is gone is null."""
    metadata: dict[str, Any] = {"namespace": "default", "generation": 1, **(written.get("metadata") or {})}
    now = {**obj, "metadata": {k: part for k, part in obj["metadata"].items() if k not in _MOMENTARY}}
    then = {**written, "metadata": metadata}
    return {
        name: now.get(name)
        for name in sorted({*now, *then} - {"kind", "apiVersion"})
        if name not in now or name not in then or not _same(now[name], then[name])
    }


def _same(left: Any, right: Any) -> bool:
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


if __name__ == "__main__":
    main()
