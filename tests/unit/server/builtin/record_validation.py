"""
Records the errors of a real server for the cases in `golden_validation`: `python -m tests.unit.server.builtin.record_validation`.

Cases are added by hand, without causes; this fills them in. An update is tried on an object
of the same name that is created, updated and deleted again.
"""

import json
import sys
from typing import Any

from tests.bed.real import real_server
from tests.bed.wire import Answer, Api
from tests.unit.server.builtin.validation import GOLDEN, Case, first_lines, kind_of


def main() -> int:
    with real_server() as server:
        api = server.api()
        for file in sorted(GOLDEN.glob("*.json")):
            cases = json.loads(file.read_text())
            for case in cases:
                answer = _created(api, case["object"]) if "object" in case else _updated(api, case)
                if answer.code not in {200, 201, 422}:
                    print(
                        f"{file.stem}: {case['case']}: answered {answer.code}: {answer.text}", file=sys.stderr
                    )
                    return 1
                case["causes"] = _causes(answer)
            lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
            file.write_text(f"[\n{lines}\n]\n")
    return 0


def _causes(answer: Answer) -> list[tuple[str, str, str]]:
    told = answer.json.get("details", {}).get("causes", []) if answer.code == 422 else []
    return first_lines([(one.get("field", ""), one.get("reason", ""), one["message"]) for one in told])


def _path(obj: dict[str, Any], *below: str) -> str:
    kind = kind_of(obj)
    prefix = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.api_version}"
    if kind.namespaced:
        prefix += f"/namespaces/{obj.get('metadata', {}).get('namespace', 'default')}"
    return "/".join([f"{prefix}/{kind.plural}", *below])


def _created(api: Api, obj: dict[str, Any]) -> Answer:
    return api.post(f"{_path(obj)}?dryRun=All", obj)


def _updated(api: Api, case: Case) -> Answer:
    old, new, below = case["old"], case["new"], case.get("subresource")
    name = old["metadata"]["name"]
    made = api.post(_path(old), {**old, "metadata": _chosen(old["metadata"])})
    try:
        if made.code == 201 and old.get("status"):
            api.put(_path(old, name, "status"), {**made.json, "status": old["status"]})
        changed = {**new, "metadata": _chosen(new["metadata"])}
        where = _path(old, name, below) if below else _path(old, name)
        return api.put(f"{where}?dryRun=All", changed)
    finally:
        api.patch(_path(old, name), {"metadata": {"finalizers": None}})
        api.delete(f"{_path(old, name)}?gracePeriodSeconds=0")


def _chosen(meta: dict[str, Any]) -> dict[str, Any]:
    """Return metadata without what the recording server allocated."""
    given = {"uid", "resourceVersion", "creationTimestamp", "generation"}
    return {key: value for key, value in meta.items() if key not in given}


if __name__ == "__main__":
    sys.exit(main())
