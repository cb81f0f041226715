"""The schema of the probes that `probe_spec` reads, and what its fields are for, for the definitions that have it."""

from __future__ import annotations

from collections.abc import Mapping

from lamina.core.crd.schema_dsl import fields, label_selector, several, text
from lamina.objects.types import Obj

PROBES: Obj = several(
    fields(
        {
            "probes": several(
                fields(
                    {
                        "condition": fields(
                            {"type": text(), "status": text(default="True")}, "status", "type"
                        ),
                        "fieldsEqual": fields({"fieldA": text(), "fieldB": text()}, "fieldA", "fieldB"),
                        "cel": fields({"rule": text(), "message": text()}, "message", "rule"),
                    }
                )
            ),
            "selector": fields(
                {
                    "kind": fields({"group": text(), "kind": text()}, "group", "kind"),
                    "selector": label_selector(),
                },
                "kind",
            ),
        },
        "probes",
        "selector",
    )
)


def described_as(field: str) -> Mapping[str, str]:
    """Return the descriptions of the fields below the one that has the probes."""
    return {
        f"{field}.selector": "The objects that the probes are for.",
        f"{field}.selector.kind": "The kind of the objects.",
        f"{field}.selector.kind.group": "The API group of the kind, empty for core.",
        f"{field}.selector.kind.kind": "The name of the kind.",
        f"{field}.selector.selector": "Selects among the objects of the kind by their labels.",
        "probes": "The probes, all of which have to pass; each has one of condition, fieldsEqual and cel.",
        "probes.condition": "Passes if the object has a condition with this type and status.",
        "condition.type": "The type of the condition.",
        "condition.status": "The status that the condition has to have.",
        "fieldsEqual": "Passes if two fields of the object are equal.",
        "fieldA": "The path of the first field, separated by dots.",
        "fieldB": "The path of the second field, separated by dots.",
        "probes.cel": "Passes if an expression is true.",
        "cel.rule": "The CEL expression, of which the variable self is the object.",
        "cel.message": "The message for an object whose expression is false.",
    }
