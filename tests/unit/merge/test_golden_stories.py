"""Sequences of writes that were recorded with kube-apiserver 1.35.4."""

import json
from typing import Any

import pytest

from lamina.errors import Cause, Conflict
from lamina.merge.apply import Manager, apply, track_update
from lamina.merge.schema import compile_schema
from tests.unit.merge.golden.record_stories import SCHEMA, STORIES, VERSION

_RECORDED = [json.loads(line) for line in STORIES.read_text().splitlines()]
_SCHEMA = compile_schema(SCHEMA)


@pytest.mark.parametrize("steps", _RECORDED, ids=lambda steps: str(steps[0]["stated"]["metadata"]["name"]))
def test_every_manager_owns_what_it_owns_on_a_real_server(steps: list[dict[str, Any]]) -> None:
    live: dict[str, Any] | None = None
    for step in steps:
        if step["kind"] == "apply":
            _applied(live, step)
        elif step["code"] == 200:
            _tracked(live, step)
        live = step.get("answer", live)


def _applied(live: dict[str, Any] | None, step: dict[str, Any]) -> None:
    def again() -> Any:
        return apply(
            live,
            step["stated"],
            _SCHEMA,
            manager=Manager(step["manager"], "Apply", VERSION),
            force=step["force"],
            now=_time(step),
            reset_fields=[["status"]],
        )

    if step["code"] == 409:
        with pytest.raises(Conflict) as refused:
            again()
        assert refused.value.message == step["message"]
        causes = {Cause(cause["reason"], cause["message"], cause["field"]) for cause in step["causes"]}
        assert set(refused.value.causes) == causes
        return
    if step["code"] == 422:
        # It takes a map that was emptied for a null, and then the null for a mistake.
        assert "null" in step["message"]
        return
    outcome = again()
    answer = step["answer"]
    assert outcome.managed_fields == answer["metadata"]["managedFields"]
    assert _without_empty(outcome.obj.get("spec")) == _without_empty(answer.get("spec"))
    assert outcome.obj["metadata"].get("labels") == answer["metadata"].get("labels")


def _tracked(live: dict[str, Any] | None, step: dict[str, Any]) -> None:
    status = step["kind"] == "status"
    answer = step["answer"]
    entries = track_update(
        live,
        {
            **answer,
            "metadata": {**answer["metadata"], "managedFields": (live or {})["metadata"]["managedFields"]},
        },
        _SCHEMA,
        manager=Manager(step["manager"], "Update", VERSION, "status" if status else ""),
        now=_time(step),
        reset_fields=[["spec"]] if status else [["status"]],
    )
    assert entries == answer["metadata"]["managedFields"]


def _time(step: dict[str, Any]) -> str:
    entries = step.get("answer", {}).get("metadata", {}).get("managedFields", [])
    return max(
        (entry.get("time", "") for entry in entries if entry["manager"] == step["manager"]), default=""
    )


def _without_empty(value: Any) -> Any:
    """Something stated empty is kept by us; the real server drops it together with what it held."""
    if isinstance(value, dict):
        kept = {key: _without_empty(held) for key, held in value.items()}
        return {
            key: held for key, held in kept.items() if held not in ({}, [], None) or isinstance(held, bool)
        }
    return [_without_empty(held) for held in value] if isinstance(value, list) else value
